package reaper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/errandhq/errand/pkg/natsconn"
	"github.com/errandhq/errand/pkg/queue"
	"github.com/errandhq/errand/pkg/telemetry"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

const (
	// lostGrace is how long a work message may take to reach the stream, and how
	// far the clocks of two task stores may be apart.
	lostGrace = 5 * time.Second
	// How many queues are looked at in one look, and how long NATS may take for each.
	// A look that has taken lostTime goes on the next time: leases don't wait for NATS.
	lostQueues  = 100
	headTimeout = 2 * time.Second
	lostTime    = 2 * time.Second
	// A message that stands for no queued task is left to executors for this long,
	// which is more than an ack takes, and clocks differ; one look removes so many.
	orphanAge   = 2 * time.Minute
	orphanLimit = 100
)

// enqueueLost tells executors again of tasks whose work message is gone.
//
// Rows and messages of a queue are in one order, that of their queueing. So a row
// that waits although it was queued before the row of the oldest message has no
// message any more; nor has any row while the stream holds no message at all. That
// needs no counting: a healthy backlog of millions costs two look-ups, and none of
// it is sent again. Rows in the middle of a gap are found as the head moves on.
func (r *Reaper) enqueueLost(ctx context.Context) (bool, error) {
	queues, err := r.Engine.Queues(ctx)
	if err != nil {
		return false, fmt.Errorf("list queues: %w", err)
	}
	full := false
	var errs []error
	began := time.Now()
	for _, q := range r.nextQueues(queues) {
		if time.Since(began) > lostTime {
			break
		}
		more, err := r.enqueueLostOf(ctx, q)
		if errors.Is(err, natsconn.ErrDisconnected) {
			return false, nil // there is nobody to tell
		}
		if err != nil { // of this queue, which must not hold up the others
			errs = append(errs, fmt.Errorf("queue of agent %s, tenant %s: %w", q.Agent, q.Tenant, err))
		}
		r.lastQueue = q
		full = full || more
	}
	return full, errors.Join(errs...)
}

// nextQueues is the queues to look at: those after the last one, from the start
// again when the list ends.
func (r *Reaper) nextQueues(queues []engine.Queue) []engine.Queue {
	slices.SortFunc(queues, compareQueues)
	after, found := slices.BinarySearchFunc(queues, r.lastQueue, compareQueues)
	if found {
		after++
	}
	return slices.Concat(queues[after:], queues[:after])[:min(lostQueues, len(queues))]
}

func compareQueues(a, b engine.Queue) int {
	return cmp.Or(cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Tenant, b.Tenant))
}

func (r *Reaper) enqueueLostOf(ctx context.Context, q engine.Queue) (full bool, err error) {
	before := r.Now().Add(-lostGrace)
	waiting, err := r.Engine.OldestQueued(ctx, q, before, 1)
	if err != nil || len(waiting) == 0 {
		return false, err
	}
	before, err = r.lostBefore(ctx, q, before)
	if err != nil || before.IsZero() {
		return false, err
	}
	lost, err := r.Engine.OldestQueued(ctx, q, before, taskLimit)
	if err != nil || len(lost) == 0 {
		return false, err
	}
	return r.settle(ctx, "lost", r.Store.Enqueue(ctx, lost))
}

// lostBefore is the time before which whatever was queued has lost its message;
// zero if that can't be told now.
func (r *Reaper) lostBefore(ctx context.Context, q engine.Queue, before time.Time) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, headTimeout)
	defer cancel()
	for range orphanLimit {
		head, err := queue.Head(ctx, r.NATS, q.Agent, q.Tenant)
		if errors.Is(err, queue.ErrEmpty) {
			return before, nil
		}
		if err != nil {
			return time.Time{}, err
		}
		queued, err := r.queuedAt(ctx, q, head)
		if err != nil {
			return time.Time{}, err
		}
		if !queued.IsZero() {
			return earlier(before, queued.Add(-lostGrace)), nil
		}
		if r.Now().Sub(head.Time) < orphanAge {
			return time.Time{}, nil
		}
		if err := r.removeOrphan(ctx, q, head); err != nil {
			return time.Time{}, err
		}
	}
	return time.Time{}, nil
}

// queuedAt is when the task was queued for which a message stands; zero if for
// none: the task was canceled or enqueued again, or nobody can read the message.
func (r *Reaper) queuedAt(ctx context.Context, q engine.Queue, head queue.Oldest) (time.Time, error) {
	id := head.GetTaskId()
	if id == "" {
		return time.Time{}, nil
	}
	rows, err := r.Engine.ReadTasks(ctx, engine.Scope{Tenant: q.Tenant}, []string{id}, engine.Detail{})
	if err != nil {
		return time.Time{}, fmt.Errorf("read the task of the oldest message: %w", err)
	}
	if len(rows) == 0 || rows[0].Task.Phase != engine.PhaseQueued || rows[0].Task.EnqueueCount != head.GetEnqueueCount() {
		return time.Time{}, nil
	}
	return rows[0].Task.QueuedAt, nil
}

// removeOrphan removes a message that executors would have removed long ago, had
// there been any. It hides what is lost behind it.
func (r *Reaper) removeOrphan(ctx context.Context, q engine.Queue, head queue.Oldest) error {
	if err := queue.Remove(ctx, r.NATS, head.Sequence); err != nil {
		return err
	}
	r.orphans.Add(ctx, 1, metric.WithAttributes(
		attribute.String(telemetry.AttrAgent, q.Agent), attribute.String(telemetry.AttrReason, "orphan")))
	r.Logger.InfoContext(ctx, "removed a work message that stands for no queued task",
		"agent", q.Agent, "tenant", q.Tenant, "task_id", head.GetTaskId())
	return nil
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
