package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/errandhq/errand/pkg/agent"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
)

// errClosed is the cause with which a lease's context ends in the end.
var errClosed = errors.New("the claim has ended")

// Lease is the hold on one task; it is an agent.Lease.
type Lease struct {
	m        *Manager
	ref      *taskstorev1.LeaseRef
	tenant   string
	duration time.Duration
	appended chan struct{}

	ctx    context.Context //nolint:containedctx // the lease's life, not a call's
	cancel context.CancelCauseFunc

	// Held by who writes: writes of one task follow one another and are numbered.
	writing  chan struct{}
	sequence int64

	mu sync.Mutex
	// Until when the lease is trusted, and what ends it then.
	trusted time.Time
	expiry  *time.Timer
	// The newest user message that the holder was told of.
	told int64
	// The turn was settled or the task released: nothing is left to hold.
	over bool
	// Emitted and not yet on its way.
	pending     []*taskstorev1.TaskEvent
	pendingSize int
	flushTimer  *time.Timer
	// Why the store doesn't take what was emitted.
	refused error
}

func newLease(ctx context.Context, m *Manager, claim *taskstorev1.Claim, duration time.Duration) *Lease {
	l := &Lease{
		m: m, tenant: claim.GetTenant(), duration: duration,
		ref:      &taskstorev1.LeaseRef{TaskId: claim.GetTask().GetId(), LeaseEpoch: claim.GetLeaseEpoch()},
		appended: make(chan struct{}, 1),
		writing:  make(chan struct{}, 1),
	}
	for _, message := range claim.GetMessages() {
		l.told = message.GetVersion()
	}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	return l
}

// Context ends with the lease; the cause is agent.ErrLeaseLost,
// agent.ErrMaxRuntime or an *agent.CanceledError. Settling or releasing doesn't end it, Close does.
func (l *Lease) Context() context.Context { return l.ctx }

// Appended receives when the store may have a newer user message.
func (l *Lease) Appended() <-chan struct{} { return l.appended }

// Close ends everything that the lease does and waits for it. What was emitted
// and not committed is gone, and a task that is still held lapses.
func (l *Lease) Close() {
	l.lose(errClosed)
	l.writing <- struct{}{}
	<-l.writing
}

func (l *Lease) key() key { return key{l.ref.GetTaskId(), l.ref.GetLeaseEpoch()} }

// trust says that the store was asked at begun to let the lease last for its
// duration.
func (l *Lease) trust(begun time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over || l.ctx.Err() != nil {
		return
	}
	// Room for a handler to stop, and for clocks that don't run alike.
	until := begun.Add(l.duration - l.duration/5)
	if !until.After(l.trusted) {
		return
	}
	l.trusted = until
	left := time.Until(until)
	if l.expiry == nil {
		l.expiry = time.AfterFunc(left, l.expire)
		return
	}
	l.expiry.Reset(left)
}

// expire loses a lease that wasn't renewed in time.
func (l *Lease) expire() {
	l.mu.Lock()
	over := l.over || time.Now().Before(l.trusted)
	l.mu.Unlock()
	if !over {
		l.lose(agent.ErrLeaseLost)
	}
}

// lose ends the lease with a cause; the first one stands.
func (l *Lease) lose(cause error) {
	l.cancel(cause)
	l.stop()
}

// settled ends the lease but not its context: a handler may go on for a while
// after its last write.
func (l *Lease) settled() {
	l.mu.Lock()
	l.over = true
	l.mu.Unlock()
	l.stop()
}

func (l *Lease) isOver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

func (l *Lease) stop() {
	l.m.drop(l)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.expiry != nil {
		l.expiry.Stop()
	}
	if l.flushTimer != nil {
		l.flushTimer.Stop()
	}
}

// gone tells why nothing can be written any more. A process that was paused for
// too long finds out here, before its timers have told it.
func (l *Lease) gone() error {
	l.mu.Lock()
	over, trusted := l.over, l.trusted
	l.mu.Unlock()
	switch {
	case over:
		return agent.ErrEnded
	case l.ctx.Err() == nil && time.Now().After(trusted):
		l.lose(agent.ErrLeaseLost)
	}
	return context.Cause(l.ctx)
}

// notify tells the holder of a user message, once.
func (l *Lease) notify(version int64) {
	l.mu.Lock()
	news := version > l.told
	l.told = max(l.told, version)
	l.mu.Unlock()
	if !news {
		return
	}
	select {
	case l.appended <- struct{}{}:
	default:
	}
}

// lossOf is the cause with which a refusal ends a lease.
func lossOf(r taskstorev1.Refusal) error {
	switch r {
	case taskstorev1.Refusal_REFUSAL_CANCELED:
		return &agent.CanceledError{}
	case taskstorev1.Refusal_REFUSAL_OVERRUN:
		return agent.ErrMaxRuntime
	default:
		return fmt.Errorf("%w: %s", agent.ErrLeaseLost, r)
	}
}
