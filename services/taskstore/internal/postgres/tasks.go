package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// ReadTasks reads whole tasks, in the order of ids.
func (e *Engine) ReadTasks(ctx context.Context, scope engine.Scope, ids []string, detail engine.Detail) ([]*engine.Snapshot, error) {
	var found snapshots
	err := e.snapshot(ctx, "read tasks", func(batch *pgx.Batch) {
		pageByID.queue(batch, args{
			"ids":    column(ids, taskID),
			"tenant": key(scope.Tenant),
			"agent":  key(scope.Agent),
			"owner":  key(scope.Owner),
		}, detail, &found)
	})
	if err != nil {
		return nil, err
	}
	list := make([]*engine.Snapshot, 0, len(found.list))
	for _, id := range ids {
		if s, ok := found.byID[id]; ok {
			list = append(list, s)
		}
	}
	return list, nil
}

// ListTasks reads a page.
func (e *Engine) ListTasks(ctx context.Context, q engine.ListQuery) ([]*engine.Snapshot, error) {
	f, a := filter(&q)
	a["limit"] = int64(q.Limit)
	var found snapshots
	err := e.transaction(ctx, "list tasks", sqlBeginSnapshot, sqlSteadyPage, func(batch *pgx.Batch) {
		e.listing(f).page.queue(batch, a, engine.Detail{}, &found)
	})
	return found.list, err
}

// CountTasks counts exactly up to a bound, and asks the planner above it.
func (e *Engine) CountTasks(ctx context.Context, q engine.ListQuery, atMost int) (int, error) {
	q.BeforeTime = time.Time{}
	f, a := filter(&q)
	var counts []int64
	err := e.transaction(ctx, "count tasks", sqlBeginSnapshot, sqlSteadyPage, func(batch *pgx.Batch) {
		queueValues(batch, e.listing(f).count, withLimit(a, atMost+1), func(v []int64) { counts = v })
	})
	if err != nil {
		return 0, err
	}
	if counts[0] <= int64(atMost) {
		return int(counts[0]), nil
	}
	estimate, err := e.estimate(ctx, e.listing(f).estimate, a)
	return max(estimate, atMost+1), err
}

// estimate is how many rows the planner expects of a query.
func (e *Engine) estimate(ctx context.Context, explain *statement, a args) (int, error) {
	var plans []string
	err := e.snapshot(ctx, "estimate tasks", func(batch *pgx.Batch) {
		queueValues(batch, explain, a, func(v []string) { plans = v })
	})
	if err != nil {
		return 0, err
	}
	var explained []struct {
		Plan struct {
			Rows float64 `json:"Plan Rows"`
		} `json:"Plan"`
	}
	if err := json.Unmarshal([]byte(plans[0]), &explained); err != nil || len(explained) != 1 {
		return 0, fmt.Errorf("read estimate of %q: %w", plans[0], err)
	}
	return int(explained[0].Plan.Rows), nil
}

// ReadHeads reads versions and states.
func (e *Engine) ReadHeads(ctx context.Context, refs []engine.TaskRef) ([]engine.Head, error) {
	var heads []engine.Head
	err := e.snapshot(ctx, "read heads", func(batch *pgx.Batch) {
		queue(batch, sqlReadHeads, args{
			"tenants": column(refs, func(r engine.TaskRef) pgtype.Text { return key(r.Tenant) }),
			"ids":     column(refs, func(r engine.TaskRef) pgtype.UUID { return taskID(r.ID) }),
		}, func(rows []*headRow) { heads = column(rows, (*headRow).head) })
	})
	return heads, err
}

// ReadEvents reads events above a version with the task's head of the same moment.
func (e *Engine) ReadEvents(
	ctx context.Context, scope engine.Scope, id string, after int64, limit int,
) ([]engine.Event, engine.Head, error) {
	var events []engine.Event
	var head *headRow
	err := e.snapshot(ctx, "read events", func(batch *pgx.Batch) {
		queueOne(batch, sqlReadHead, args{
			"id":     taskID(id),
			"tenant": key(scope.Tenant),
			"agent":  key(scope.Agent),
			"owner":  key(scope.Owner),
		}, func(r *headRow) { head = r })
		queue(batch, sqlReadEvents, args{
			"id":    taskID(id),
			"after": after,
			"limit": int64(limit),
		}, func(rows []*eventRow) { events = column(rows, (*eventRow).event) })
	})
	switch {
	case err != nil:
		return nil, engine.Head{}, err
	case head == nil:
		return nil, engine.Head{}, engine.ErrNotFound
	}
	return events, head.head(), nil
}

// ReadUserMessages reads messages of senders above a version, in order.
func (e *Engine) ReadUserMessages(ctx context.Context, ref engine.TaskRef, after int64) ([]engine.Message, error) {
	var messages []engine.Message
	err := e.snapshot(ctx, "read user messages", func(batch *pgx.Batch) {
		queue(batch, sqlReadUserMessages, args{
			"id":     taskID(ref.ID),
			"tenant": key(ref.Tenant),
			"after":  after,
		}, func(rows []*messageRow) { messages = column(rows, (*messageRow).message) })
	})
	return messages, err
}
