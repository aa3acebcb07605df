package operation

import (
	"context"
	"errors"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/services/gateway/internal/admission"
	"github.com/errandhq/errand/services/gateway/internal/load"
	"github.com/errandhq/errand/services/gateway/internal/validate"
)

// Anew stands for a stream that doesn't continue an earlier one.
const Anew int64 = -1

// StreamMessage accepts a message and returns the stream of its turn: a direct
// Message alone, or the task and what follows (A2A §3.1.2). If the message had
// been accepted before, the stream may continue an earlier one after a version.
func (s *Service) StreamMessage(ctx context.Context, r *a2apb.SendMessageRequest, after int64) (*Stream, error) {
	call, err := s.admitSend(ctx, r, offersStreams)
	if err != nil {
		return nil, err
	}
	return s.open(ctx, call, func(ctx context.Context, t *Stream) error { return t.send(ctx, r, after) })
}

// Subscribe returns the stream of a task: a snapshot and what follows, until the
// task is terminal (A2A §3.1.6). After a version it is what follows alone, for
// terminal tasks too.
func (s *Service) Subscribe(ctx context.Context, r *a2apb.SubscribeToTaskRequest, after int64) (*Stream, error) {
	call, err := admission.Route(ctx, r.GetTenant(), r.GetId())
	if err != nil {
		return nil, err
	}
	if err := offersStreams(call); err != nil {
		return nil, err
	}
	if err := validate.ID("id", r.GetId(), s.cfg.Limits.ID); err != nil {
		return nil, err
	}
	return s.open(ctx, call, func(ctx context.Context, t *Stream) error {
		t.taskID = r.GetId()
		if after == Anew {
			return t.subscribe(ctx)
		}
		return t.resume(ctx, after)
	})
}

func offersStreams(call *admission.Call) error {
	if !call.Agent.Streaming() {
		return a2aerr.UnsupportedOperation("this agent does not stream")
	}
	return nil
}

// open makes a stream begin; a stream that can't is closed.
func (s *Service) open(ctx context.Context, call *admission.Call, begin func(context.Context, *Stream) error) (*Stream, error) {
	if !s.streams.TryAcquire(1) {
		return nil, a2aerr.Unavailable("too many streams are open", retryPause)
	}
	t := &Stream{service: s, call: call, release: func() { s.streams.Release(1) }}
	ctx, cancel := s.bounded(ctx, 0)
	defer cancel()
	if err := begin(ctx, t); err != nil {
		t.Close()
		return nil, err
	}
	load.Wait(ctx)
	return t, nil
}

func (t *Stream) send(ctx context.Context, r *a2apb.SendMessageRequest, after int64) error {
	sent, err := t.service.accept(ctx, t.call, r)
	if err != nil {
		return err
	}
	if sent.reply != nil {
		t.first = &Update{Response: &a2apb.StreamResponse{Payload: &a2apb.StreamResponse_Message{Message: sent.reply}}}
		t.done = true
		return nil
	}
	t.taskID, t.ofTurn, t.accepted, t.historyLength = sent.task.GetId(), true, sent.accepted, sent.historyLength
	if sent.duplicate && after != Anew {
		return t.resume(ctx, after)
	}
	first := t.show(sent.task, sent.version)
	t.first = &first
	if t.done {
		return nil
	}
	if err := t.watch(ctx, sent.version); err != nil {
		return err
	}
	if t.live.Position() > sent.version {
		return t.begin(ctx)
	}
	return nil
}

func (t *Stream) subscribe(ctx context.Context) error {
	if err := t.watch(ctx, Anew); err != nil {
		return err
	}
	if err := t.begin(ctx); err != nil {
		return err
	}
	if task.Terminal(t.first.Response.GetTask().GetStatus().GetState()) {
		return a2aerr.UnsupportedOperation("the task is finished")
	}
	return nil
}

// begin makes a snapshot that is not older than the watch the first update.
func (t *Stream) begin(ctx context.Context) error {
	first, err := t.snapshot(ctx)
	t.first = &first
	return err
}

// resume goes on after the version that the sender saw last. What lies between
// that and the live events comes from the event log; a snapshot takes the place
// of what the log no longer holds, and of a version that the task never had.
func (t *Stream) resume(ctx context.Context, after int64) error {
	page, err := t.service.cfg.Store.ListEvents(ctx, &taskstorev1.ListEventsRequest{
		Scope: t.call.Scope(), TaskId: t.taskID, After: after,
	})
	if err != nil {
		return orCause(ctx, err)
	}
	version, state, err := t.now(ctx)
	if err != nil {
		return err
	}
	t.sent, t.log = after, page.GetEvents()
	t.snapshotDue = after > version || len(t.log) == 0 && page.GetVersion() > after
	if t.endsWith(state, version) {
		t.replayTo = version
		t.done = after == version
		return nil
	}
	if err := t.watch(ctx, min(after, version)); err != nil {
		return err
	}
	t.replayTo = max(t.live.Position(), page.GetVersion())
	return nil
}

// now returns version and state of the task, which is known to be visible.
func (t *Stream) now(ctx context.Context) (int64, a2apb.TaskState, error) {
	got, err := t.service.cfg.Store.GetVersions(ctx, &taskstorev1.GetVersionsRequest{
		Tasks: []*taskstorev1.TaskRef{{Tenant: t.call.Tenant, TaskId: t.taskID}},
	})
	if err != nil {
		return 0, 0, orCause(ctx, err)
	}
	for _, v := range got.GetTasks() {
		return v.GetVersion(), v.GetState(), nil
	}
	return 0, 0, a2aerr.TaskNotFound(t.taskID)
}

// watch makes the stream live for events above a version.
func (t *Stream) watch(ctx context.Context, after int64) error {
	limited, cancel := context.WithTimeoutCause(ctx, watchTimeout, errWatchTimeout)
	defer cancel()
	live, err := t.service.cfg.Watcher.Watch(limited, t.call.Tenant, t.taskID, after)
	if err != nil {
		return streamError(ctx, t.taskID, err)
	}
	t.live = live
	return nil
}

var errWatchTimeout = errors.New("the watch did not become live in time")
