package lease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/errandhq/errand/pkg/agent"
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
	// The longest delay that the store takes.
	maxDelay = 24 * time.Hour
)

// errUnavailable is one item that failed at the store, of a call that didn't.
var errUnavailable = errors.New("the task store could not do it now")

// commit writes until the store has answered or the lease has ended. A write is
// repeated under its number, so that one which had committed although its answer
// got lost isn't doubled. The caller holds writing.
func (l *Lease) commit(w *taskstorev1.TaskWrite) error {
	l.sequence++
	w.Lease, w.Sequence = l.ref, l.sequence
	for n := 0; ; n++ {
		result, err := l.m.writes.Do(l.ctx, w)
		if err == nil && result.GetRefusal() == taskstorev1.Refusal_REFUSAL_UNAVAILABLE {
			err = errUnavailable
		}
		if err == nil {
			return l.judge(result)
		}
		if err := l.next(n, err); err != nil {
			return err
		}
	}
}

// giveBack releases the task.
func (l *Lease) giveBack(delay time.Duration, failed bool) error {
	delay = min(max(delay, 0), maxDelay)
	r := &taskstorev1.Release{Lease: l.ref, Failed: failed, Delay: durationpb.New(delay)}
	for n := 0; ; n++ {
		result, err := l.m.releases.Do(l.ctx, r)
		refusal := result.GetRefusal()
		if err == nil && refusal == taskstorev1.Refusal_REFUSAL_UNAVAILABLE {
			err = errUnavailable
		}
		switch {
		case err != nil:
			if err := l.next(n, err); err != nil {
				return err
			}
		case refusal == taskstorev1.Refusal_REFUSAL_UNSPECIFIED:
			return nil
		case refusal == taskstorev1.Refusal_REFUSAL_LEASE_LOST && n > 0:
			return nil // most likely given back by the try whose answer got lost
		default:
			l.lose(lossOf(refusal))
			return context.Cause(l.ctx)
		}
	}
}

// next waits before the next try after the n-th failed with err. It fails when
// there is to be none.
func (l *Lease) next(n int, err error) error {
	if l.ctx.Err() != nil {
		return context.Cause(l.ctx)
	}
	l.m.cfg.Logger.WarnContext(l.ctx, "a write failed at the task store", "error", err,
		"task_id", l.ref.GetTaskId(), "tenant", l.tenant, "try", n+1)
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
