package operation

import (
	"context"
	"errors"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"

	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/services/gateway/internal/admission"
	"github.com/errandhq/errand/services/gateway/internal/load"
	"github.com/errandhq/errand/services/gateway/internal/watch"
)

// A waiting request looks at the store by itself at these growing intervals, so
// that a notice that got lost delays it and no more.
const (
	firstLook = time.Second
	lastLook  = 15 * time.Second
)

// settled tells whether the task reached a terminal or interrupted state after
// the message was accepted; the state it was in before doesn't count.
func (a *sent) settled() bool {
	return a.version > a.accepted && task.Settled(a.task.GetStatus().GetState())
}

// forget keeps of the task what waiting takes: it is read again at the end.
func (a *sent) forget() {
	a.task = &a2apb.Task{Id: a.task.GetId(), Status: &a2apb.TaskStatus{State: a.task.GetStatus().GetState()}}
}

// settle waits until the task is settled and reads it. When the wait takes longer
// than allowed, the task is what it is then.
func (s *Service) settle(ctx context.Context, call *admission.Call, a *sent) error {
	if a.settled() {
		return nil
	}
	load.Wait(ctx)
	a.forget()
	ctx, cancel := s.bounded(ctx, stopPatience)
	defer cancel()
	limited, cancelLimit := context.WithTimeoutCause(ctx, s.cfg.Limits.Wait.Value(), errWaitedLongEnough)
	defer cancelLimit()

	w := &waiting{service: s, call: call, sent: a}
	defer w.unsubscribe()
	err := w.untilSettled(limited)
	if errors.Is(err, errWaitedLongEnough) {
		return s.reload(ctx, call, a)
	}
	return err
}

var errWaitedLongEnough = errors.New("waited as long as a request may")

// reload reads the task again.
func (s *Service) reload(ctx context.Context, call *admission.Call, a *sent) error {
	got, err := s.cfg.Store.GetTask(ctx, &taskstorev1.GetTaskRequest{
		Scope: call.Scope(), TaskId: a.task.GetId(), HistoryLength: a.historyLength,
	})
	if err != nil {
		return orCause(ctx, err)
	}
	a.task, a.version = got.GetTask(), got.GetVersion()
	return nil
}

// orCause prefers the reason why ctx ended to what a call made of it.
func orCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// waiting is one blocking request.
type waiting struct {
	service *Service
	call    *admission.Call
	sent    *sent
	// Nil while there is no watch: then the looks have to do.
	watch *watch.Subscription
	// Until the next look at the store.
	pause time.Duration
}

func (w *waiting) untilSettled(ctx context.Context) error {
	for !w.sent.settled() {
		if w.watch == nil {
			w.subscribe(ctx)
		}
		settled, err := w.listen(ctx)
		if err != nil {
			return err
		}
		if !settled && !w.look(ctx) {
			continue
		}
		if err := w.service.reload(ctx, w.call, w.sent); err != nil {
			return err
		}
	}
	return nil
}

// subscribe joins the task's watch, if the notifier can be reached. A watch that
// had begun already may be further than the task that is known here; the next
// look tells what was missed.
func (w *waiting) subscribe(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, firstLook)
	defer cancel()
	subscription, err := w.service.cfg.Watcher.Watch(limited, w.call.Tenant, w.sent.task.GetId(), w.sent.version)
	if err != nil {
		w.service.cfg.Logger.DebugContext(ctx, "waiting without a watch", "task_id", w.sent.task.GetId(), "error", err)
		return
	}
	w.watch = subscription
	if subscription.Position() <= w.sent.version {
		w.pause = max(w.pause, firstLook)
	}
}

func (w *waiting) unsubscribe() {
	if w.watch != nil {
		w.watch.Close()
		w.watch = nil
	}
}

// listen waits for an event that settles the task. It returns without one when
// it is time for a look, and fails when ctx ends.
func (w *waiting) listen(ctx context.Context) (settled bool, err error) {
	listening, cancel := context.WithTimeout(ctx, w.pause)
	defer cancel()
	w.pause = min(max(2*w.pause, firstLook), lastLook)
	for {
		item, err := w.next(listening)
		switch {
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		case listening.Err() != nil, item.Resync:
			return false, nil
		case err != nil:
			w.unsubscribe()
			return false, nil
		case task.Settled(stateOf(item.Event)) && item.Event.GetVersion() > w.sent.accepted:
			return true, nil
		}
	}
}

func (w *waiting) next(ctx context.Context) (watch.Item, error) {
	if w.watch == nil {
		<-ctx.Done()
		return watch.Item{}, ctx.Err()
	}
	return w.watch.Next(ctx)
}

// look asks the store whether reading the task is worth it. A store that can't
// be reached is asked again later: the message has been accepted.
func (w *waiting) look(ctx context.Context) bool {
	got, err := w.service.cfg.Store.GetVersions(ctx, &taskstorev1.GetVersionsRequest{
		Tasks: []*taskstorev1.TaskRef{{Tenant: w.call.Tenant, TaskId: w.sent.task.GetId()}},
	})
	if err != nil {
		w.service.cfg.Logger.WarnContext(ctx, "waiting without the task store", "task_id", w.sent.task.GetId(), "error", err)
		return false
	}
	for _, v := range got.GetTasks() {
		return v.GetVersion() > w.sent.accepted && task.Settled(v.GetState())
	}
	return true // reading it says that it is gone
}

// stateOf is the state that an event set; unspecified if it set none.
func stateOf(e *eventv1.Event) a2apb.TaskState {
	if created := e.GetCreated(); created != nil {
		return created.GetStatus().GetState()
	}
	return e.GetStatusUpdate().GetStatus().GetState()
}
