package store

import (
	"context"
	"time"

	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Kept is what became of a task that background work looked at.
type Kept int

// What can become of a task.
const (
	// Left is a task that had moved on: nothing was done.
	Left Kept = iota
	// Requeued is a task that executors were told of again.
	Requeued
	// GivenUp is a task that is FAILED now.
	GivenUp
)

// ExpireLeases takes leases away that lapsed: their tasks are queued again, or
// given up when their attempts are used up.
func (s *Store) ExpireLeases(ctx context.Context, leases []engine.LeaseRef) []Result[Kept] {
	changes := make([]*keep, len(leases))
	for i, l := range leases {
		changes[i] = &keep{id: l.TaskID, epoch: l.Epoch, act: s.expireLease}
	}
	return s.keep(ctx, "expire lease", changes)
}

// Enqueue tells executors again of queued tasks: delayed ones that are due, and
// those whose work message is gone. They are queued from now on, as their new
// messages are: rows and messages of a queue stay in one order.
func (s *Store) Enqueue(ctx context.Context, ids []string) []Result[Kept] {
	return s.keep(ctx, "enqueue task", keepAll(ids, func(d *draft, _ *keep, _ engine.Lease) Kept {
		if d.row.Phase != engine.PhaseQueued || d.row.DueAt.After(d.now) {
			return Left
		}
		d.queue()
		return Requeued
	}))
}

// ExpireParked gives up tasks that have waited for their sender since before a time.
func (s *Store) ExpireParked(ctx context.Context, ids []string, before time.Time) []Result[Kept] {
	return s.keep(ctx, "expire parked task", keepAll(ids, func(d *draft, _ *keep, _ engine.Lease) Kept {
		if !task.Interrupted(d.row.State) || !d.row.StatusTime.Before(before) {
			return Left
		}
		s.giveUp(d, reasonInput)
		return GivenUp
	}))
}

// ExpireTurns gives up tasks whose turn began before a time.
func (s *Store) ExpireTurns(ctx context.Context, ids []string, startedBefore time.Time) []Result[Kept] {
	return s.keep(ctx, "expire turn", keepAll(ids, func(d *draft, _ *keep, _ engine.Lease) Kept {
		if d.row.TurnStartedAt.IsZero() || !d.row.TurnStartedAt.Before(startedBefore) {
			return Left
		}
		d.controlOverrun()
		s.giveUp(d, reasonRuntime)
		return GivenUp
	}))
}

func (s *Store) expireLease(d *draft, c *keep, lease engine.Lease) Kept {
	held := d.row.Phase == engine.PhaseLeased && d.row.LeaseEpoch == c.epoch && lease.Epoch == c.epoch
	if !held || !lease.ExpiresAt.Before(d.now) {
		return Left
	}
	// The holder is told nothing: it has lost the task, however that goes on.
	if s.exhausted(d.row) {
		d.row.LeaseEpoch++ // so that the end of the task isn't the holder's
		s.giveUp(d, reasonAttempts)
		return GivenUp
	}
	d.unlease()
	d.queue()
	return Requeued
}

// keep is a change that no request asked for. It looks again at what was read
// before, since the task may have moved on.
type keep struct {
	id string
	// Of the lapsed lease.
	epoch int64
	act   func(d *draft, c *keep, lease engine.Lease) Kept

	outcome Kept
}

func keepAll(ids []string, act func(*draft, *keep, engine.Lease) Kept) []*keep {
	changes := make([]*keep, len(ids))
	for i, id := range ids {
		changes[i] = &keep{id: id, act: act}
	}
	return changes
}

func (s *Store) keep(ctx context.Context, what string, changes []*keep) []Result[Kept] {
	results := make([]Result[Kept], len(changes))
	for i, err := range do(ctx, s, changes) {
		if results[i].Err = wrap(what, err); err == nil {
			results[i].Value = changes[i].outcome
		}
	}
	return results
}

func (c *keep) Keys() []any { return []any{c.id} }

func (c *keep) Size() int { return len(c.id) }

func (c *keep) selects(_ time.Time, sel *engine.Selection) {
	sel.Tasks = append(sel.Tasks, engine.TaskKey{ID: c.id})
	if c.epoch != 0 {
		sel.Leases = append(sel.Leases, c.id)
	}
}

func (c *keep) decide(now time.Time, rows *engine.Loaded) decision {
	c.outcome = Left
	t := rows.Tasks[c.id]
	if t == nil || task.Terminal(t.State) {
		return decision{}
	}
	d := revise(now, t)
	if c.outcome = c.act(d, c, rows.Leases[c.id]); c.outcome == Left {
		return decision{}
	}
	d.notice.Trace = requestTrace(t)
	return d.done()
}

// requestTrace is the trace of the request that queued a task: what is done for
// it later belongs there.
func requestTrace(t *engine.Task) trace.SpanContext {
	carrier := propagation.MapCarrier{"traceparent": t.Traceparent}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}
