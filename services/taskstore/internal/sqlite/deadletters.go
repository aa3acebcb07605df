package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

const deadLetterColumns = `task_id, tenant, agent, owner, context_id, reason, attempts, last_holder, at,
	redriven_task_id, redriven_at, redriven_by`

func scanDeadLetter(r *row) engine.DeadLetter {
	return engine.DeadLetter{
		TaskID: r.id(), Tenant: r.text(), Agent: r.text(), Owner: r.text(), ContextID: r.text(), Reason: r.text(),
		Attempts: int32(r.int()), LastHolder: r.text(), At: r.time(), //nolint:gosec // written from one
		Redrive: engine.Redrive{TaskID: r.id(), At: r.time(), By: r.text()},
	}
}

// ReadDeadLetter implements engine.Reader.
func (e *Engine) ReadDeadLetter(ctx context.Context, id string) (engine.DeadLetter, error) {
	var found []engine.DeadLetter
	err := e.read(ctx, func(c *conn) (err error) {
		found, err = c.deadLetters(`task_id = ?`, taskID(id))
		return err
	})
	if err != nil {
		return engine.DeadLetter{}, fmt.Errorf("read dead letter: %w", err)
	}
	if len(found) == 0 {
		return engine.DeadLetter{}, engine.ErrNotFound
	}
	return found[0], nil
}

// ListDeadLetters implements engine.Reader.
func (e *Engine) ListDeadLetters(ctx context.Context, q engine.DeadLetterQuery) ([]engine.DeadLetter, error) {
	where, args := deadLetterFilter(q)
	var found []engine.DeadLetter
	err := e.read(ctx, func(c *conn) (err error) {
		found, err = c.deadLetters(where+` ORDER BY at DESC, task_id LIMIT ?`, append(args, q.Limit)...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return found, nil
}

func deadLetterFilter(q engine.DeadLetterQuery) (where string, args []any) {
	where = "1"
	add := func(used bool, condition string, values ...any) {
		if used {
			where, args = where+" AND "+condition, append(args, values...)
		}
	}
	add(q.Tenant != "", "tenant = ?", q.Tenant)
	add(q.Agent != "", "agent = ?", q.Agent)
	add(q.Reason != "", "reason = ?", q.Reason)
	add(q.Redriven != nil && *q.Redriven, "redriven_at IS NOT NULL")
	add(q.Redriven != nil && !*q.Redriven, "redriven_at IS NULL")
	add(!q.Since.IsZero(), "at >= ?", q.Since)
	add(!q.Until.IsZero(), "at < ?", q.Until)
	add(q.BeforeID != "", "at <= ? AND (at < ? OR task_id > ?)", q.BeforeTime, q.BeforeTime, taskID(q.BeforeID))
	return where, args
}

// PurgeDeadLetters implements engine.Keeper.
func (e *Engine) PurgeDeadLetters(ctx context.Context, before time.Time, limit int) (int, error) {
	return e.purge(ctx, "dead letters", `
DELETE FROM dead_letters
WHERE rowid IN (SELECT rowid FROM dead_letters WHERE at < ? ORDER BY at LIMIT ?)`, before, limit)
}

func (c *conn) deadLetters(where string, args ...any) ([]engine.DeadLetter, error) {
	var found []engine.DeadLetter
	err := c.query(`SELECT `+deadLetterColumns+` FROM dead_letters WHERE `+where, func(r *row) error {
		found = append(found, scanDeadLetter(r))
		return nil
	}, args...)
	return found, err
}

func (c *conn) loadDeadLetters(ids []string, l *engine.Loaded) error {
	for _, id := range ids {
		found, err := c.deadLetters(`task_id = ?`, taskID(id))
		if err != nil {
			return fmt.Errorf("read dead letter: %w", err)
		}
		if len(found) > 0 {
			l.DeadLetters[id] = found[0]
		}
	}
	return nil
}

func (c *conn) insertDeadLetter(d engine.DeadLetter) error {
	_, err := c.exec(`INSERT INTO dead_letters (`+deadLetterColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		taskID(d.TaskID), d.Tenant, d.Agent, d.Owner, d.ContextID, d.Reason, int64(d.Attempts), d.LastHolder, d.At,
		taskID(d.Redrive.TaskID), d.Redrive.At, d.Redrive.By)
	return err
}

func (c *conn) redriveDeadLetter(d engine.DeadLetter) error {
	changed, err := c.exec(`
UPDATE dead_letters
SET redriven_task_id = ?, redriven_at = ?, redriven_by = ?
WHERE task_id = ?
	AND redriven_at IS NULL`, taskID(d.Redrive.TaskID), d.Redrive.At, d.Redrive.By, taskID(d.TaskID))
	if err == nil && changed == 0 {
		err = engine.ErrConflict
	}
	return err
}
