package agent

import (
	"context"
	"fmt"
	"sync"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"google.golang.org/protobuf/proto"
)

// Progress tells the sender how it goes: the task stays in WORKING, with a
// message of these parts if there are any.
func (t *Task) Progress(ctx context.Context, parts ...*a2apb.Part) error {
	event, err := statusEvent(task.Working, parts)
	if err != nil {
		return err
	}
	return t.emit(ctx, event)
}

// Emit adds an artifact as a whole, or replaces the one with its id. Without an
// id it gets one that is stable: the n-th artifact of a turn without an id has
// the same one in every attempt.
//
// An emit returns before it is committed. Emits that follow each other quickly
// share a commit, and each stays an event of its own; see [Task.Flush].
func (t *Task) Emit(ctx context.Context, artifact *a2apb.Artifact) error {
	return t.Stream(artifact).SendLast(ctx, artifact.GetParts()...)
}

// Stream begins an artifact that is emitted in chunks. Of header everything
// counts but the parts; without an id it gets one as from [Task.Emit].
func (t *Task) Stream(header *a2apb.Artifact) *ArtifactStream {
	first := proto.CloneOf(header)
	first.Parts = nil
	if first.GetArtifactId() == "" {
		t.c.mu.Lock()
		t.c.artifacts++
		first.ArtifactId = t.c.artifactID(t.c.artifacts)
		t.c.mu.Unlock()
	}
	return &ArtifactStream{t: t, header: first}
}

// ArtifactStream emits one artifact in chunks. Readers see one artifact with
// the parts of all chunks in order; a stream shows each chunk as it comes.
type ArtifactStream struct {
	t *Task

	mu sync.Mutex
	// What the next chunk says beside its parts; the first says all.
	header *a2apb.Artifact
	begun  bool
}

// ID is the artifact's id.
func (s *ArtifactStream) ID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.header.GetArtifactId()
}

// Send emits one chunk of at least one part. The first replaces the artifact of
// the same id that may be there from an earlier stream or run.
func (s *ArtifactStream) Send(ctx context.Context, parts ...*a2apb.Part) error {
	return s.send(ctx, false, parts)
}

// SendLast emits the last chunk.
func (s *ArtifactStream) SendLast(ctx context.Context, parts ...*a2apb.Part) error {
	return s.send(ctx, true, parts)
}

func (s *ArtifactStream) send(ctx context.Context, last bool, parts []*a2apb.Part) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := checkParts(parts); err != nil {
		return fmt.Errorf("artifact %q: %w", s.header.GetArtifactId(), err)
	}
	chunk := proto.CloneOf(s.header)
	chunk.Parts = parts
	update := &a2apb.TaskArtifactUpdateEvent{Artifact: chunk, Append: s.begun, LastChunk: last}
	err := s.t.emit(ctx, &taskstorev1.TaskEvent{Kind: &taskstorev1.TaskEvent_ArtifactUpdate{ArtifactUpdate: update}})
	if err != nil {
		return fmt.Errorf("emit artifact %q: %w", s.header.GetArtifactId(), err)
	}
	s.header = &a2apb.Artifact{ArtifactId: s.header.GetArtifactId()}
	s.begun = true
	return nil
}
