package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

// queued is the condition of the index tasks_queued.
const queued = `phase = 1 AND due_at IS NULL`

// DueTasks implements engine.Keeper.
func (e *Engine) DueTasks(ctx context.Context, now time.Time, limit int) ([]string, error) {
	return e.readIDs(ctx, "due tasks", `
SELECT id
FROM tasks
WHERE phase = 1
	AND due_at <= ?
ORDER BY due_at
LIMIT ?`, now, limit)
}

// Queues implements engine.Keeper. It goes from one pair to the next in the
// index and not over all queued tasks.
func (e *Engine) Queues(ctx context.Context) ([]engine.Queue, error) {
	var queues []engine.Queue
	err := e.read(ctx, func(c *conn) error {
		for last, more := (engine.Queue{}), true; more; {
			more = false
			err := c.query(`
SELECT agent, tenant
FROM tasks INDEXED BY tasks_queued
WHERE `+queued+`
	AND (agent, tenant) > (?, ?)
ORDER BY agent, tenant
LIMIT 1`, func(r *row) error {
				last, more = engine.Queue{Agent: r.text(), Tenant: r.text()}, true
				queues = append(queues, last)
				return nil
			}, last.Agent, last.Tenant)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read queues: %w", err)
	}
	return queues, nil
}

// OldestQueued implements engine.Keeper.
func (e *Engine) OldestQueued(ctx context.Context, q engine.Queue, before time.Time, limit int) ([]string, error) {
	return e.readIDs(ctx, "oldest queued tasks", `
SELECT id
FROM tasks
WHERE `+queued+`
	AND agent = ?
	AND tenant = ?
	AND queued_at < ?
ORDER BY queued_at, id
LIMIT ?`, q.Agent, q.Tenant, before, limit)
}

// UnsettledAgents implements engine.Keeper. It goes from one agent to the next in
// the indexes and not over all tasks.
func (e *Engine) UnsettledAgents(ctx context.Context) ([]string, error) {
	var agents []string
	err := e.read(ctx, func(c *conn) error {
		for last, more := "", true; more; {
			more = false
			err := c.query(`
SELECT min(agent)
FROM (
	SELECT min(agent) AS agent FROM tasks WHERE state IN (6, 8) AND agent > ?1
	UNION ALL
	SELECT min(agent) FROM tasks WHERE turn_started_at IS NOT NULL AND agent > ?1
)`, func(r *row) error {
				if agent := r.text(); agent != "" {
					last, more = agent, true
					agents = append(agents, agent)
				}
				return nil
			}, last)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read agents with unsettled tasks: %w", err)
	}
	return agents, nil
}

// ParkedTasks implements engine.Keeper.
func (e *Engine) ParkedTasks(ctx context.Context, agent string, before time.Time, limit int) ([]string, error) {
	return e.readIDs(ctx, "parked tasks", `
SELECT id
FROM tasks
WHERE state IN (6, 8)
	AND agent = ?
	AND status_time < ?
ORDER BY status_time
LIMIT ?`, agent, before, limit)
}

// OverrunTasks implements engine.Keeper.
func (e *Engine) OverrunTasks(ctx context.Context, agent string, startedBefore time.Time, limit int) ([]string, error) {
	return e.readIDs(ctx, "overrun tasks", `
SELECT id
FROM tasks
WHERE agent = ?
	AND turn_started_at < ?
ORDER BY turn_started_at
LIMIT ?`, agent, startedBefore, limit)
}

func (e *Engine) readIDs(ctx context.Context, what, sql string, args ...any) ([]string, error) {
	var ids []string
	err := e.read(ctx, func(c *conn) error {
		return c.query(sql, func(r *row) error {
			ids = append(ids, r.id())
			return nil
		}, args...)
	})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	return ids, nil
}
