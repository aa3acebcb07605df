package store

import (
	"fmt"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/task"
	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// encodedMessage is a message that belongs to a task, with its bytes.
type encodedMessage struct {
	message *a2apb.Message
	data    []byte
}

// ofTask copies a message and says in it where it belongs.
func ofTask(m *a2apb.Message, taskID, contextID string) (*encodedMessage, error) {
	m = proto.CloneOf(m)
	m.TaskId, m.ContextId = taskID, contextID
	data, err := proto.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	return &encodedMessage{message: m, data: data}, nil
}

// toTask builds the task that a snapshot shows.
func toTask(s *engine.Snapshot) (*a2apb.Task, error) {
	t := &a2apb.Task{
		Id: s.Task.ID, ContextId: s.Task.ContextID,
		Status: &a2apb.TaskStatus{State: s.Task.State, Timestamp: timestamppb.New(s.Task.StatusTime)},
	}
	if s.StatusMessage != nil {
		t.Status.Message = &a2apb.Message{}
		if err := decode(s.StatusMessage.Data, t.Status.Message); err != nil {
			return nil, err
		}
	}
	if s.Task.Metadata != nil {
		t.Metadata = &structpb.Struct{}
		if err := decode(s.Task.Metadata, t.Metadata); err != nil {
			return nil, err
		}
	}
	for _, row := range s.History {
		m := &a2apb.Message{}
		if err := decode(row.Data, m); err != nil {
			return nil, err
		}
		t.History = append(t.History, m)
	}
	var err error
	t.Artifacts, err = toArtifacts(s.Chunks)
	return t, err
}

// toArtifacts joins chunks, which come artifact by artifact.
func toArtifacts(chunks []engine.Chunk) ([]*a2apb.Artifact, error) {
	var artifacts []*a2apb.Artifact
	last := ""
	for _, row := range chunks {
		chunk := &a2apb.Artifact{}
		if err := decode(row.Data, chunk); err != nil {
			return nil, err
		}
		if len(artifacts) > 0 && row.ArtifactID == last {
			task.ExtendArtifact(artifacts[len(artifacts)-1], chunk)
			continue
		}
		artifacts, last = append(artifacts, chunk), row.ArtifactID
	}
	return artifacts, nil
}

func toUserMessage(row engine.Message) (*eventv1.UserMessage, error) {
	m := &eventv1.UserMessage{Message: &a2apb.Message{}, Version: row.Version}
	if err := decode(row.Data, m.Message); err != nil {
		return nil, err
	}
	if row.Request != nil {
		m.Request = &eventv1.RequestInfo{}
		if err := decode(row.Request, m.Request); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func decode(data []byte, into proto.Message) error {
	if err := proto.Unmarshal(data, into); err != nil {
		return fmt.Errorf("decode stored %s: %w", into.ProtoReflect().Descriptor().Name(), err)
	}
	return nil
}
