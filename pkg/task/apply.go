package task

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

var (
	// ErrTerminal refuses an event for a task that is in a terminal state.
	ErrTerminal = errors.New("task is in a terminal state")
	// ErrUnknownArtifact refuses a chunk that appends to an artifact that the
	// task doesn't have.
	ErrUnknownArtifact = errors.New("chunk appends to an unknown artifact")
	// ErrOtherTask refuses an event of another task or context.
	ErrOtherTask = errors.New("event belongs to another task")
)

// Apply changes t by one event of the event log. It returns t, or the created
// task when t is nil and the event is the creation. On an error t is unchanged.
func Apply(t *a2apb.Task, e *eventv1.Event) (*a2apb.Task, error) {
	switch kind := e.GetKind().(type) {
	case *eventv1.Event_Created:
		if t != nil {
			return t, fmt.Errorf("version %d creates task %s again", e.GetVersion(), t.GetId())
		}
		return proto.CloneOf(kind.Created), nil
	case *eventv1.Event_StatusUpdate:
		return t, ApplyStatus(t, kind.StatusUpdate)
	case *eventv1.Event_ArtifactUpdate:
		return t, ApplyArtifact(t, kind.ArtifactUpdate)
	case *eventv1.Event_UserMessage:
		return t, AppendMessage(t, kind.UserMessage.GetMessage())
	default:
		return t, fmt.Errorf("version %d has no kind", e.GetVersion())
	}
}

// ApplyStatus replaces t's status. The message of the status before moves to
// the end of the history; the event's metadata merges into the task's. The
// table of moves isn't asked, so that tasks of other servers can be built too.
func ApplyStatus(t *a2apb.Task, e *a2apb.TaskStatusUpdateEvent) error {
	if err := accepts(t, e.GetTaskId(), e.GetContextId()); err != nil {
		return err
	}
	if m := t.GetStatus().GetMessage(); m != nil {
		t.History = append(t.History, m)
	}
	t.Status = proto.CloneOf(e.GetStatus())
	t.Metadata = MergeMetadata(t.GetMetadata(), e.GetMetadata())
	return nil
}

// ApplyArtifact adds an artifact, replaces the one with its id in place, or
// with append extends it.
func ApplyArtifact(t *a2apb.Task, e *a2apb.TaskArtifactUpdateEvent) error {
	if err := accepts(t, e.GetTaskId(), e.GetContextId()); err != nil {
		return err
	}
	chunk := e.GetArtifact()
	for i, have := range t.GetArtifacts() {
		if have.GetArtifactId() != chunk.GetArtifactId() {
			continue
		}
		if e.GetAppend() {
			ExtendArtifact(have, chunk)
		} else {
			t.Artifacts[i] = proto.CloneOf(chunk)
		}
		return nil
	}
	if e.GetAppend() {
		return fmt.Errorf("%w: %q", ErrUnknownArtifact, chunk.GetArtifactId())
	}
	t.Artifacts = append(t.Artifacts, proto.CloneOf(chunk))
	return nil
}

// AppendMessage adds a message to the end of t's history.
func AppendMessage(t *a2apb.Task, m *a2apb.Message) error {
	if err := accepts(t, m.GetTaskId(), m.GetContextId()); err != nil {
		return err
	}
	t.History = append(t.History, proto.CloneOf(m))
	return nil
}

// ExtendArtifact appends a chunk to an artifact: parts follow parts, metadata
// merges, extensions are united, and a name or description that the chunk has
// replaces the one before.
func ExtendArtifact(a, chunk *a2apb.Artifact) {
	for _, p := range chunk.GetParts() {
		a.Parts = append(a.Parts, proto.CloneOf(p))
	}
	if chunk.GetName() != "" {
		a.Name = chunk.GetName()
	}
	if chunk.GetDescription() != "" {
		a.Description = chunk.GetDescription()
	}
	a.Metadata = MergeMetadata(a.GetMetadata(), chunk.GetMetadata())
	a.Extensions = unite(a.GetExtensions(), chunk.GetExtensions())
}

// MergeMetadata returns into with the members of from, which win. Neither
// argument's values are copied deeply; nil stands for no metadata.
func MergeMetadata(into, from *structpb.Struct) *structpb.Struct {
	if len(from.GetFields()) == 0 {
		return into
	}
	merged := &structpb.Struct{Fields: make(map[string]*structpb.Value, len(into.GetFields())+len(from.GetFields()))}
	maps.Copy(merged.Fields, into.GetFields())
	maps.Copy(merged.Fields, from.GetFields())
	return merged
}

func accepts(t *a2apb.Task, taskID, contextID string) error {
	if taskID != "" && taskID != t.GetId() || contextID != "" && contextID != t.GetContextId() {
		return fmt.Errorf("%w: task %q in context %q", ErrOtherTask, taskID, contextID)
	}
	if Terminal(t.GetStatus().GetState()) {
		return fmt.Errorf("%w: %s", ErrTerminal, t.GetStatus().GetState())
	}
	return nil
}

func unite(a, b []string) []string {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}
