package operation

import (
	"context"
	"errors"
	"io"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/services/gateway/internal/admission"
	"github.com/errandhq/errand/services/gateway/internal/watch"
)

// Update is one event of a stream.
type Update struct {
	// Version of the task that the response shows; 0 for a direct Message.
	Version  int64
	Response *a2apb.StreamResponse
	// Resync says that the response is the task as it is, in the place of events
	// that the sender has missed.
	Resync bool
}

// Stream is what a streaming operation answers: a snapshot of the task, then
// each later event once and in order (A2A §3.5.2). Next is for one goroutine.
type Stream struct {
	service *Service
	call    *admission.Call
	release func()
	taskID  string
	// Of the snapshots; unset for the store's default.
	historyLength *int32
	// A stream that was opened by a message ends when its turn does, one that was
	// opened by SubscribeToTask when the task does (A2A §3.1.2, §3.1.6).
	accepted int64
	ofTurn   bool

	// What Next returns first.
	first *Update
	// The version through which the sender knows the task.
	sent int64
	// Events up to this version come from the event log.
	replayTo int64
	log      []*eventv1.Event
	// Live events; nil for a stream that needs none.
	live *watch.Subscription
	// The sender needs a snapshot before anything else.
	snapshotDue bool
	done        bool
}

// Next returns the next update. It returns io.EOF at the end, ErrStopping when
// the gateway stops, and the cause when ctx ends; a later call then goes on.
func (t *Stream) Next(ctx context.Context) (Update, error) {
	if first := t.first; first != nil {
		t.first = nil
		return *first, nil
	}
	ctx, cancel := t.service.bounded(ctx, 0)
	defer cancel()
	for !t.done {
		if t.snapshotDue {
			known := t.sent
			shown, err := t.snapshot(ctx)
			if err != nil || shown.Version != known {
				shown.Resync = true
				return shown, err
			}
			continue // nothing was missed
		}
		event, err := t.nextEvent(ctx)
		if err != nil {
			return Update{}, streamError(ctx, t.taskID, err)
		}
		if event == nil || event.GetVersion() <= t.sent {
			continue
		}
		t.sent = event.GetVersion()
		t.done = t.endsWith(stateOf(event), event.GetVersion())
		if response := toResponse(event); response != nil {
			return Update{Version: event.GetVersion(), Response: response}, nil
		}
	}
	return Update{}, io.EOF
}

// Close gives back what the stream holds.
func (t *Stream) Close() {
	if t.live != nil {
		t.live.Close()
	}
	t.release()
}

// nextEvent returns nil when a snapshot is due instead.
func (t *Stream) nextEvent(ctx context.Context) (*eventv1.Event, error) {
	if t.sent < t.replayTo {
		return t.replay(ctx)
	}
	if t.live == nil {
		return nil, io.EOF
	}
	item, err := t.live.Next(ctx)
	if err != nil {
		return nil, err
	}
	// An event without content was made by a version of Errand that this one
	// doesn't know; the snapshot shows its effect.
	if item.Resync || item.Event.GetKind() == nil {
		t.snapshotDue = true
		return nil, nil //nolint:nilnil // as documented
	}
	return item.Event, nil
}

// replay returns the next event of the log, which may not reach back far enough.
func (t *Stream) replay(ctx context.Context) (*eventv1.Event, error) {
	if len(t.log) == 0 {
		page, err := t.service.cfg.Store.ListEvents(ctx, &taskstorev1.ListEventsRequest{
			Scope: t.call.Scope(), TaskId: t.taskID, After: t.sent,
		})
		if err != nil {
			return nil, err
		}
		t.log = page.GetEvents()
	}
	if len(t.log) == 0 || t.log[0].GetKind() == nil {
		t.snapshotDue = true
		return nil, nil //nolint:nilnil // as documented
	}
	event := t.log[0]
	t.log = t.log[1:]
	return event, nil
}

// snapshot reads the task and makes it the next update.
func (t *Stream) snapshot(ctx context.Context) (Update, error) {
	got, err := t.service.cfg.Store.GetTask(ctx, &taskstorev1.GetTaskRequest{
		Scope: t.call.Scope(), TaskId: t.taskID, HistoryLength: t.historyLength,
	})
	if err != nil {
		return Update{}, orCause(ctx, err)
	}
	return t.show(got.GetTask(), got.GetVersion()), nil
}

func (t *Stream) show(shown *a2apb.Task, version int64) Update {
	t.snapshotDue, t.log = false, nil
	t.sent = version
	t.done = t.endsWith(shown.GetStatus().GetState(), version)
	return Update{Version: version, Response: &a2apb.StreamResponse{Payload: &a2apb.StreamResponse_Task{Task: shown}}}
}

// endsWith tells whether the stream ends with a state. AUTH_REQUIRED ends none:
// credentials come by another way, and the turn goes on (A2A §7.6).
func (t *Stream) endsWith(state a2apb.TaskState, version int64) bool {
	return task.Terminal(state) || t.ofTurn && version > t.accepted && state == task.InputRequired
}

func toResponse(e *eventv1.Event) *a2apb.StreamResponse {
	switch kind := e.GetKind().(type) {
	case *eventv1.Event_Created:
		return &a2apb.StreamResponse{Payload: &a2apb.StreamResponse_Task{Task: kind.Created}}
	case *eventv1.Event_StatusUpdate:
		return &a2apb.StreamResponse{Payload: &a2apb.StreamResponse_StatusUpdate{StatusUpdate: kind.StatusUpdate}}
	case *eventv1.Event_ArtifactUpdate:
		return &a2apb.StreamResponse{Payload: &a2apb.StreamResponse_ArtifactUpdate{ArtifactUpdate: kind.ArtifactUpdate}}
	}
	return nil
}

// streamError gives watch errors their public form.
func streamError(ctx context.Context, taskID string, err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return io.EOF
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case errors.Is(err, watch.ErrNotFound):
		return a2aerr.TaskNotFound(taskID)
	case errors.Is(err, watch.ErrUnavailable):
		return a2aerr.Unavailable("live events can't be reached", retryPause)
	}
	return err
}
