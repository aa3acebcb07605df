package lease

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/agent"
	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
	// A store that answers heartbeats but not this write, for so many times,
	// will not take it.
	maxTries = 10
)

// commit writes until the store has answered or the lease has ended.
func (l *Lease) commit(w *taskstorev1.TaskWrite) error {
	result, err := l.m.writes.Do(l.ctx, w)
	for n := 0; err != nil; n++ {
		if err := l.next(n, err); err != nil {
			return err
		}
		result, err = l.again(w)
	}
	return l.judge(result)
}

// again repeats a write whose answer got lost. The write may have committed:
// nobody but the holder of the lease writes artifacts and progress, so the log
// tells, and repeating it would double chunks.
func (l *Lease) again(w *taskstorev1.TaskWrite) (*taskstorev1.WriteResult, error) {
	l.mu.Lock()
	after := l.version
	l.mu.Unlock()
	log, err := l.m.cfg.Store.ListEvents(l.ctx, &taskstorev1.ListEventsRequest{
		Scope: &taskstorev1.Scope{Tenant: l.tenant, Agent: l.agent}, TaskId: l.ref.GetTaskId(), After: after,
	})
	if err != nil {
		return nil, fmt.Errorf("read events of task %s: %w", l.ref.GetTaskId(), err)
	}
	for _, e := range log.GetEvents() {
		if sameKind(e, w.GetEvents()[0]) {
			return &taskstorev1.WriteResult{Version: log.GetVersion()}, nil
		}
	}
	return l.m.writes.Do(l.ctx, w)
}

func sameKind(have *eventv1.Event, wrote *taskstorev1.TaskEvent) bool {
	if u := wrote.GetStatusUpdate(); u != nil {
		return have.GetStatusUpdate() != nil && state(have.GetStatusUpdate()) == state(u)
	}
	return have.GetArtifactUpdate() != nil
}

func state(u *a2apb.TaskStatusUpdateEvent) a2apb.TaskState { return u.GetStatus().GetState() }

// giveBack releases the task; releasing twice does no harm.
func (l *Lease) giveBack(delay time.Duration, failed bool) error {
	r := &taskstorev1.Release{Lease: l.ref, Failed: failed, Delay: durationpb.New(delay)}
	result, err := l.m.releases.Do(l.ctx, r)
	for n := 0; err != nil; n++ {
		if err := l.next(n, err); err != nil {
			return err
		}
		result, err = l.m.releases.Do(l.ctx, r)
	}
	if refusal := result.GetRefusal(); refusal != taskstorev1.Refusal_REFUSAL_UNSPECIFIED {
		l.lose(lossOf(refusal))
		return context.Cause(l.ctx)
	}
	return nil
}

// next waits before the next try after the n-th failed with err. It fails when
// there is to be none.
func (l *Lease) next(n int, err error) error {
	if l.ctx.Err() != nil {
		return context.Cause(l.ctx)
	}
	l.m.cfg.Logger.WarnContext(l.ctx, "a write failed at the task store", "error", err,
		"task_id", l.ref.GetTaskId(), "tenant", l.tenant, "agent", l.agent, "try", n+1)
	switch code := status.Code(err); {
	case code == codes.ResourceExhausted:
		return l.refuse(agent.ErrTooLarge)
	case code == codes.InvalidArgument, code == codes.Unimplemented, n == maxTries:
		return l.refuse(fmt.Errorf("%w: %w", agent.ErrRefused, err))
	}
	pause := min(firstPause<<n, lastPause)
	timer := time.NewTimer(pause/2 + rand.N(pause/2))
	defer timer.Stop()
	select {
	case <-timer.C:
		return l.gone()
	case <-l.ctx.Done():
		return context.Cause(l.ctx)
	}
}
