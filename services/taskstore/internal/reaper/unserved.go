package reaper

import (
	"context"
	"fmt"
)

// reportUnserved tells of queues that no executor serves, because their agent left
// the agents file. Their tasks stay queued: the agent may come back, and senders may
// cancel them.
func (r *Reaper) reportUnserved(ctx context.Context) (bool, error) {
	queues, err := r.Engine.Queues(ctx)
	if err != nil {
		return false, fmt.Errorf("list queues: %w", err)
	}
	unserved := int64(0)
	for _, q := range queues {
		if r.Agents.Agent(q.Agent) != nil {
			continue
		}
		unserved++
		r.Logger.WarnContext(ctx, "queued tasks wait for an agent that is not in the agents file", "agent", q.Agent, "tenant", q.Tenant)
	}
	r.unserved.Record(ctx, unserved)
	return false, nil
}
