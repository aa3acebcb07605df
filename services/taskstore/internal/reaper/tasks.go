package reaper

import (
	"context"
	"fmt"
	"time"

	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/telemetry"
	"github.com/errandhq/errand/services/taskstore/internal/store"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// turnMargin is how much longer than max_runtime a turn may take before the reaper
// ends it: its executor does so itself, if it can.
const turnMargin = 30 * time.Second

// expireLeases leaves all leases alone for a while after the clock has jumped: those
// of living holders have not lapsed, and are renewed by then.
func (r *Reaper) expireLeases(ctx context.Context) (bool, error) {
	if jumped := r.Jumped(); !jumped.IsZero() && time.Since(jumped) < r.longestLease() {
		return false, nil
	}
	lapsed, err := r.Engine.LapsedLeases(ctx, r.Now(), taskLimit)
	if err != nil || len(lapsed) == 0 {
		return false, err
	}
	return r.settle(ctx, "lapsed", r.Store.ExpireLeases(ctx, lapsed))
}

func (r *Reaper) enqueueDue(ctx context.Context) (bool, error) {
	due, err := r.Engine.DueTasks(ctx, r.Now(), taskLimit)
	if err != nil || len(due) == 0 {
		return false, err
	}
	return r.settle(ctx, "due", r.Store.Enqueue(ctx, due))
}

func (r *Reaper) expireTurns(ctx context.Context) (bool, error) {
	return r.eachAgent(ctx, func(a config.Agent) (bool, error) {
		before := r.Now().Add(-a.MaxRuntime.Value() - turnMargin)
		ids, err := r.Engine.OverrunTasks(ctx, a.Name, before, taskLimit)
		if err != nil || len(ids) == 0 {
			return false, err
		}
		return r.settle(ctx, "overrun", r.Store.ExpireTurns(ctx, ids, before))
	})
}

func (r *Reaper) expireParked(ctx context.Context) (bool, error) {
	return r.eachAgent(ctx, func(a config.Agent) (bool, error) {
		before := r.Now().Add(-a.InputTimeout.Value())
		ids, err := r.Engine.ParkedTasks(ctx, a.Name, before, taskLimit)
		if err != nil || len(ids) == 0 {
			return false, err
		}
		return r.settle(ctx, "parked", r.Store.ExpireParked(ctx, ids, before))
	})
}

func (r *Reaper) longestLease() time.Duration {
	longest := r.Agents.Settings("").Lease.Value()
	for _, a := range r.Agents.Agents {
		longest = max(longest, a.Lease.Value())
	}
	return longest
}

// eachAgent does a duty for each agent that has unsettled tasks, be it in the
// agents file or not.
func (r *Reaper) eachAgent(ctx context.Context, do func(config.Agent) (bool, error)) (bool, error) {
	names, err := r.Engine.UnsettledAgents(ctx)
	if err != nil {
		return false, err
	}
	full := false
	for _, name := range names {
		more, err := do(r.Agents.Settings(name))
		if err != nil {
			return false, fmt.Errorf("agent %s: %w", name, err)
		}
		full = full || more
	}
	return full, nil
}

// outcomes are the words for what became of a task.
var outcomes = map[store.Kept]string{store.Requeued: "requeued", store.GivenUp: "given_up"}

// settle counts and logs what became of the tasks that were found. Tasks that
// moved on meanwhile are nobody's business; a look that found only such is not
// called full, lest it be repeated for ever.
func (r *Reaper) settle(ctx context.Context, why string, results []store.Result[store.Kept]) (full bool, err error) {
	counts := map[store.Kept]int64{}
	for _, result := range results {
		if result.Err != nil {
			return false, fmt.Errorf("%s tasks: %w", why, result.Err)
		}
		counts[result.Value]++
	}
	for kept, outcome := range outcomes {
		if n := counts[kept]; n > 0 {
			r.reaped.Add(ctx, n, metric.WithAttributes(
				attribute.String(telemetry.AttrReason, why), attribute.String(telemetry.AttrOutcome, outcome)))
			r.Logger.InfoContext(ctx, "background work changed tasks", "reason", why, "outcome", outcome, "tasks", n)
		}
	}
	return len(results) == taskLimit && counts[store.Left] < taskLimit, nil
}
