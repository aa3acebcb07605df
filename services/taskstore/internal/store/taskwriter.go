package store

import (
	"slices"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/task"
	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// taskWriter turns the events of a handler into rows.
type taskWriter struct {
	*draft
	limits config.Limits
	newID  func() string
	// The artifacts that the write names, as they were and then as it makes them.
	artifacts map[engine.ArtifactKey]engine.ArtifactHead
}

func (w *taskWriter) add(e *taskstorev1.TaskEvent) taskstorev1.Refusal {
	if proto.Size(e) > w.limits.Event {
		return taskstorev1.Refusal_REFUSAL_TOO_LARGE
	}
	switch kind := e.GetKind().(type) {
	case *taskstorev1.TaskEvent_StatusUpdate:
		return w.addStatus(kind.StatusUpdate)
	case *taskstorev1.TaskEvent_ArtifactUpdate:
		return w.addChunk(kind.ArtifactUpdate)
	default:
		return taskstorev1.Refusal_REFUSAL_INVALID_EVENT
	}
}

func (w *taskWriter) addStatus(u *a2apb.TaskStatusUpdateEvent) taskstorev1.Refusal {
	to := u.GetStatus().GetState()
	switch {
	case w.foreign(u.GetTaskId(), u.GetContextId()), !task.Known(to):
		return taskstorev1.Refusal_REFUSAL_INVALID_EVENT
	case !task.CanMove(w.row.State, to):
		return taskstorev1.Refusal_REFUSAL_ILLEGAL_MOVE
	}
	message, ok := w.statusMessage(u.GetStatus().GetMessage())
	if !ok {
		return taskstorev1.Refusal_REFUSAL_INVALID_EVENT
	}
	// A task must be able to end, whatever it holds.
	if message != nil && !task.Terminal(to) && !w.holds(int64(len(message.data))) {
		return taskstorev1.Refusal_REFUSAL_TOO_LARGE
	}
	if refused := w.mergeMetadata(u.GetMetadata()); refused != 0 {
		return refused
	}
	w.status(to, message, u.GetMetadata())
	return 0
}

// statusMessage completes the message of a status; ok is false for one that
// names another task or can't be stored.
func (w *taskWriter) statusMessage(m *a2apb.Message) (encoded *encodedMessage, ok bool) {
	if m == nil {
		return nil, true
	}
	if w.foreign(m.GetTaskId(), m.GetContextId()) {
		return nil, false
	}
	m = proto.CloneOf(m)
	m.Role = a2apb.Role_ROLE_AGENT
	if m.GetMessageId() == "" {
		m.MessageId = w.newID()
	}
	encoded, err := ofTask(m, w.row.ID, w.row.ContextID)
	return encoded, err == nil
}

// mergeMetadata keeps what events say of the task as a whole.
func (w *taskWriter) mergeMetadata(from *structpb.Struct) taskstorev1.Refusal {
	if len(from.GetFields()) == 0 {
		return 0
	}
	have := &structpb.Struct{}
	if err := decode(w.row.Metadata, have); err != nil {
		return taskstorev1.Refusal_REFUSAL_INVALID_EVENT
	}
	merged, err := proto.Marshal(task.MergeMetadata(have, from))
	switch {
	case err != nil:
		return taskstorev1.Refusal_REFUSAL_INVALID_EVENT
	case len(merged) > w.limits.Event:
		return taskstorev1.Refusal_REFUSAL_TOO_LARGE
	}
	w.row.Metadata = merged
	return 0
}

// addChunk appends to an artifact, replaces it in its place, or adds one. The
// rows that it touches don't grow with the artifact, unless it is replaced.
func (w *taskWriter) addChunk(u *a2apb.TaskArtifactUpdateEvent) taskstorev1.Refusal {
	key := engine.ArtifactKey{TaskID: w.row.ID, ArtifactID: u.GetArtifact().GetArtifactId()}
	if w.foreign(u.GetTaskId(), u.GetContextId()) || !validArtifactID(key.ArtifactID, w.limits.ID) {
		return taskstorev1.Refusal_REFUSAL_INVALID_EVENT
	}
	data, err := proto.Marshal(u.GetArtifact())
	if err != nil {
		return taskstorev1.Refusal_REFUSAL_INVALID_EVENT
	}
	head, exists := w.artifacts[key]
	switch {
	case !exists && u.GetAppend():
		return taskstorev1.Refusal_REFUSAL_UNKNOWN_ARTIFACT
	case !exists:
		head.Position = w.row.Version + 1
	case !u.GetAppend():
		w.drop(key, &head)
	}
	size := int64(len(data))
	if !w.holds(size) {
		return taskstorev1.Refusal_REFUSAL_TOO_LARGE
	}
	w.row.ContentBytes += size
	head.Bytes += size
	w.artifacts[key] = head
	e := w.event()
	w.changes.Chunks = append(w.changes.Chunks, engine.Chunk{
		ArtifactKey: key, Version: e.GetVersion(), Position: head.Position, Total: head.Bytes, Data: data,
	})
	e.Kind = &eventv1.Event_ArtifactUpdate{ArtifactUpdate: &a2apb.TaskArtifactUpdateEvent{
		TaskId: w.row.ID, ContextId: w.row.ContextID, Artifact: u.GetArtifact(),
		Append: u.GetAppend(), LastChunk: u.GetLastChunk(), Metadata: u.GetMetadata(),
	}}
	return 0
}

// holds tells whether the task may hold so many bytes more.
func (w *taskWriter) holds(more int64) bool {
	return w.row.ContentBytes+more <= int64(w.limits.Artifacts)
}

// drop empties an artifact that is about to be replaced, also of chunks that
// came with this write.
func (w *taskWriter) drop(key engine.ArtifactKey, head *engine.ArtifactHead) {
	w.row.ContentBytes -= head.Bytes
	head.Bytes = 0
	w.changes.Chunks = slices.DeleteFunc(w.changes.Chunks, func(c engine.Chunk) bool { return c.ArtifactKey == key })
	if !slices.Contains(w.changes.DropArtifacts, key) {
		w.changes.DropArtifacts = append(w.changes.DropArtifacts, key)
	}
}

// foreign tells whether an event names another task or context than its lease.
func (w *taskWriter) foreign(taskID, contextID string) bool {
	return taskID != "" && taskID != w.row.ID || contextID != "" && contextID != w.row.ContextID
}
