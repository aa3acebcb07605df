package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"google.golang.org/protobuf/proto"
)

const (
	// window is how long an event waits for others to share its commit.
	window = 25 * time.Millisecond
	// What may wait at most; an event that finds no room makes the handler wait.
	maxPending     = 256
	maxPendingSize = 1 << 20
)

// Emit takes an event for writing within the window.
func (l *Lease) Emit(_ context.Context, event *taskstorev1.TaskEvent) error {
	if err := l.gone(); err != nil {
		return err
	}
	size := proto.Size(event)
	l.mu.Lock()
	full := len(l.pending) == maxPending || len(l.pending) > 0 && l.pendingSize+size > maxPendingSize
	l.mu.Unlock()
	if full {
		if err := l.flush(); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused != nil {
		return l.refused
	}
	l.pending = append(l.pending, event)
	l.pendingSize += size
	if len(l.pending) == 1 {
		l.flushTimer = time.AfterFunc(window, func() { _ = l.flush() })
	}
	return nil
}

// Flush writes what was emitted.
func (l *Lease) Flush(context.Context) error {
	if err := l.gone(); err != nil {
		return err
	}
	return l.flush()
}

// flush runs on the lease's context: a write that has begun ends with the lease,
// not with a handler's patience. What it can't write is kept in refused.
func (l *Lease) flush() error {
	if err := l.acquire(); err != nil {
		return err
	}
	defer l.free()
	return l.writePending(l.take())
}

// Settle writes what was emitted and the end of the turn, in one call.
func (l *Lease) Settle(_ context.Context, s agent.Settlement) error {
	if err := l.gone(); err != nil {
		return err
	}
	if err := l.acquire(); err != nil {
		return err
	}
	defer l.free()
	pending := l.take()
	if size(pending)+proto.Size(s.Event) > maxPendingSize {
		if err := l.writePending(pending); err != nil {
			return err
		}
		pending = nil
	}
	if err := l.refusal(); err != nil && s.Event.GetStatusUpdate().GetStatus().GetState() != task.Failed {
		return err
	}
	err := l.commit(&taskstorev1.TaskWrite{
		Events: append(slices.Clone(pending), s.Event), HandledVersion: s.HandledVersion, Grant: s.Grant,
	})
	switch {
	case err == nil:
		l.settled()
	case errors.Is(err, agent.ErrNewerMessage):
		if err := l.writePending(pending); err != nil {
			return err
		}
	}
	return err
}

// Release writes what was emitted and gives the task back.
func (l *Lease) Release(_ context.Context, delay time.Duration, failed bool) error {
	if err := l.gone(); err != nil {
		return err
	}
	if err := l.acquire(); err != nil {
		return err
	}
	defer l.free()
	if err := l.writePending(l.take()); err != nil {
		return err
	}
	if err := l.giveBack(delay, failed); err != nil {
		return err
	}
	l.settled()
	return nil
}

func (l *Lease) writePending(events []*taskstorev1.TaskEvent) error {
	if len(events) == 0 {
		return l.refusal()
	}
	return l.commit(&taskstorev1.TaskWrite{Events: events})
}

// take empties what is pending; the caller writes it.
func (l *Lease) take() []*taskstorev1.TaskEvent {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.flushTimer != nil {
		l.flushTimer.Stop()
	}
	events := l.pending
	l.pending, l.pendingSize = nil, 0
	if l.refused != nil {
		return nil
	}
	return events
}

func (l *Lease) acquire() error {
	if l.ctx.Err() != nil {
		return context.Cause(l.ctx)
	}
	select {
	case l.writing <- struct{}{}:
		return nil
	case <-l.ctx.Done():
		return context.Cause(l.ctx)
	}
}

func (l *Lease) free() { <-l.writing }

func (l *Lease) isWriting() bool { return len(l.writing) > 0 }

func (l *Lease) refusal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}

// refuse remembers that the store doesn't take what was emitted.
func (l *Lease) refuse(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused == nil {
		l.refused = err
	}
	return err
}

// judge turns a result into what it means for the lease.
func (l *Lease) judge(result *taskstorev1.WriteResult) error {
	switch refusal := result.GetRefusal(); refusal {
	case taskstorev1.Refusal_REFUSAL_UNSPECIFIED:
		return nil
	case taskstorev1.Refusal_REFUSAL_NEWER_MESSAGE:
		return agent.ErrNewerMessage
	case taskstorev1.Refusal_REFUSAL_TOO_LARGE:
		return l.refuse(agent.ErrTooLarge)
	case taskstorev1.Refusal_REFUSAL_CANCELED, taskstorev1.Refusal_REFUSAL_OVERRUN, taskstorev1.Refusal_REFUSAL_TERMINAL,
		taskstorev1.Refusal_REFUSAL_LEASE_LOST, taskstorev1.Refusal_REFUSAL_NOT_FOUND:
		l.lose(lossOf(refusal))
		return context.Cause(l.ctx)
	default:
		return l.refuse(fmt.Errorf("%w: %s", agent.ErrRefused, refusal))
	}
}

func size(events []*taskstorev1.TaskEvent) int {
	n := 0
	for _, e := range events {
		n += proto.Size(e)
	}
	return n
}
