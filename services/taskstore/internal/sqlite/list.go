package sqlite

import (
	"context"
	"encoding/json"
	"fmt"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

// probes is how many rows the estimate of a count looks at.
const probes = 200

// ListTasks implements engine.Reader.
func (e *Engine) ListTasks(ctx context.Context, q engine.ListQuery) ([]*engine.Snapshot, error) {
	sql, args := listStatement(q)
	var page []*engine.Snapshot
	err := e.read(ctx, func(c *conn) error {
		err := c.query(sql, func(r *row) error {
			page = append(page, &engine.Snapshot{Task: scanTask(r)})
			return nil
		}, args...)
		if err != nil {
			return err
		}
		for i, s := range page {
			if page[i], err = c.snapshot(s.Task, engine.Detail{}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list tasks: %w", err)
	}
	return page, nil
}

func listStatement(q engine.ListQuery) (sql string, args []any) {
	where, args := filter(q)
	if q.BeforeID != "" {
		where += ` AND status_time <= ? AND (status_time < ? OR id > ?)`
		args = append(args, q.BeforeTime, q.BeforeTime, taskID(q.BeforeID))
	}
	return `SELECT ` + taskColumns + ` FROM tasks INDEXED BY ` + index(q) + where + `
ORDER BY status_time DESC, id
LIMIT ?`, append(args, q.Limit)
}

// CountTasks implements engine.Reader. Whether there are more than may be counted
// is asked first, since passing over rows costs half of counting them.
func (e *Engine) CountTasks(ctx context.Context, q engine.ListQuery, atMost int) (int, error) {
	where, args := filter(q)
	from := ` FROM tasks INDEXED BY ` + index(q) + where
	var count int
	err := e.read(ctx, func(c *conn) error {
		more := false
		err := c.query(`SELECT 1`+from+` LIMIT 1 OFFSET ?`, func(*row) error {
			more = true
			return nil
		}, append(args, atMost)...)
		if err != nil {
			return err
		}
		if more {
			estimate, err := c.estimate(where, args)
			count = max(atMost+1, estimate)
			return err
		}
		return c.query(`SELECT count(*)`+from, func(r *row) error {
			count = int(r.int())
			return nil
		}, args...)
	})
	if err != nil {
		return 0, fmt.Errorf("count tasks: %w", err)
	}
	return count, nil
}

// estimate looks at rows that lie evenly over the table, which is in the order
// in which tasks were created, and takes their share of matches for the whole.
// Its cost doesn't grow with the table, and it is the same for each page.
func (c *conn) estimate(where string, args []any) (int, error) {
	var last int64
	err := c.query(`SELECT max(rowid) FROM tasks`, func(r *row) error {
		last = r.int()
		return nil
	})
	if err != nil {
		return 0, err
	}
	rows := make([]int64, probes)
	for i := range rows {
		rows[i] = 1 + last*int64(2*i+1)/(2*probes)
	}
	list, err := json.Marshal(rows)
	if err != nil {
		return 0, fmt.Errorf("encode probes: %w", err)
	}
	var matches int64
	err = c.query(`
SELECT count(*)
FROM json_each(?) AS probe
CROSS JOIN tasks ON tasks.rowid = probe.value`+where, func(r *row) error {
		matches = r.int()
		return nil
	}, append([]any{string(list)}, args...)...)
	return int(last * matches / probes), err
}

// filter is the condition of a list, its first part always the tenant.
func filter(q engine.ListQuery) (where string, args []any) {
	where, args = scoped(q.Scope)
	if q.ContextID != "" {
		where, args = where+" AND context_id = ?", append(args, q.ContextID)
	}
	if q.State != a2apb.TaskState_TASK_STATE_UNSPECIFIED {
		where, args = where+" AND state = ?", append(args, int64(q.State))
	}
	if !q.StatusSince.IsZero() {
		where, args = where+" AND status_time >= ?", append(args, q.StatusSince)
	}
	return " WHERE 1" + where, args
}

// index chooses the index that leaves fewest rows to pass over. SQLite would
// need statistics for that, which a young database doesn't have. Most tasks of
// an old one are COMPLETED, so that this state tells less than the owner.
func index(q engine.ListQuery) string {
	state := q.State != a2apb.TaskState_TASK_STATE_UNSPECIFIED
	switch {
	case q.ContextID != "":
		return "tasks_by_context"
	case state && (q.Scope.Owner == "" || q.State != a2apb.TaskState_TASK_STATE_COMPLETED):
		return "tasks_by_state"
	case q.Scope.Owner != "":
		return "tasks_by_owner"
	default:
		return "tasks_by_status_time"
	}
}
