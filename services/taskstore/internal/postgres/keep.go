package postgres

import (
	"context"
	"maps"
	"time"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// withLimit adds the argument @limit.
func withLimit(a args, limit int) args {
	b := args{"limit": int64(limit)}
	maps.Copy(b, a)
	return b
}

// readIDs runs a query for task ids.
func (e *Engine) readIDs(ctx context.Context, what string, s *statement, a args) ([]string, error) {
	var ids []string
	err := e.snapshot(ctx, what, func(batch *pgx.Batch) {
		queueValues(batch, s, a, func(found []string) { ids = found })
	})
	return ids, err
}

// RenewLeases moves the expiry of leases that are still held.
func (e *Engine) RenewLeases(
	ctx context.Context, holder string, refs []engine.LeaseRef, until time.Time,
) ([]engine.Renewal, error) {
	a := leaseRefColumns(refs)
	a["holder"], a["until"] = holder, stamp(until)
	var renewals []engine.Renewal
	err := e.change(ctx, "renew leases", func(batch *pgx.Batch) {
		queue(batch, sqlRenewLeases, a, func(rows []*renewalRow) { renewals = column(rows, (*renewalRow).renewal) })
	})
	return renewals, err
}

// LapsedLeases reads leases that expired before now.
func (e *Engine) LapsedLeases(ctx context.Context, now time.Time, limit int) ([]engine.LeaseRef, error) {
	var refs []engine.LeaseRef
	err := e.snapshot(ctx, "read lapsed leases", func(batch *pgx.Batch) {
		queue(batch, sqlLapsedLeases, withLimit(args{"now": stamp(now)}, limit), func(rows []*leaseRefRow) {
			refs = column(rows, func(r *leaseRefRow) engine.LeaseRef {
				return engine.LeaseRef{TaskID: r.TaskID, Epoch: r.LeaseEpoch}
			})
		})
	})
	return refs, err
}

// DueTasks reads delayed tasks whose due time has come.
func (e *Engine) DueTasks(ctx context.Context, now time.Time, limit int) ([]string, error) {
	return e.readIDs(ctx, "read due tasks", sqlDueTasks, withLimit(args{"now": stamp(now)}, limit))
}

// Queues lists the (agent, tenant) pairs that have queued tasks.
func (e *Engine) Queues(ctx context.Context) ([]engine.Queue, error) {
	var queues []engine.Queue
	err := e.snapshot(ctx, "list queues", func(batch *pgx.Batch) {
		queue(batch, sqlQueues, args{}, func(rows []*engine.Queue) {
			queues = column(rows, func(r *engine.Queue) engine.Queue { return *r })
		})
	})
	return queues, err
}

// OldestQueued reads a queue's tasks that were queued before a time, in that order.
func (e *Engine) OldestQueued(ctx context.Context, q engine.Queue, before time.Time, limit int) ([]string, error) {
	return e.readIDs(ctx, "read queued tasks", sqlOldestQueued, queueArgs(q, before, limit))
}

func queueArgs(q engine.Queue, before time.Time, limit int) args {
	return withLimit(args{"agent": key(q.Agent), "tenant": key(q.Tenant), "before": stamp(before)}, limit)
}

// UnsettledAgents lists agents with interrupted tasks or turns that have begun.
func (e *Engine) UnsettledAgents(ctx context.Context) ([]string, error) {
	return e.readIDs(ctx, "list agents with unsettled tasks", sqlUnsettledAgents, args{})
}

// ParkedTasks reads an agent's interrupted tasks with an old status.
func (e *Engine) ParkedTasks(ctx context.Context, agent string, before time.Time, limit int) ([]string, error) {
	return e.readIDs(ctx, "read parked tasks", sqlParkedTasks, withLimit(args{"agent": agent, "before": stamp(before)}, limit))
}

// OverrunTasks reads an agent's unsettled tasks whose turn began long ago.
func (e *Engine) OverrunTasks(ctx context.Context, agent string, startedBefore time.Time, limit int) ([]string, error) {
	return e.readIDs(ctx, "read overrun tasks", sqlOverrunTasks, withLimit(args{"agent": agent, "before": stamp(startedBefore)}, limit))
}

// HoldRole takes or renews a role.
func (e *Engine) HoldRole(ctx context.Context, role, holder string, now, until time.Time) (bool, error) {
	var held bool
	err := e.change(ctx, "hold role", func(batch *pgx.Batch) {
		batch.Queue(sqlHoldRole.text, sqlHoldRole.with(args{
			"role": role, "holder": holder, "now": stamp(now), "until": stamp(until),
			"latest": stamp(until.Add(engine.RoleClockSlack)),
		})).Exec(func(tag pgconn.CommandTag) error {
			held = tag.RowsAffected() == 1
			return nil
		})
	})
	return held, err
}

// DropRole gives a role back.
func (e *Engine) DropRole(ctx context.Context, role, holder string) error {
	return e.change(ctx, "drop role", func(batch *pgx.Batch) {
		batch.Queue(sqlDropRole.text, sqlDropRole.with(args{"role": role, "holder": holder}))
	})
}
