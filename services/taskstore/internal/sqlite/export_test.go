package sqlite

import (
	"context"
	"strings"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

// ExplainList is SQLite's plan for a list.
func (e *Engine) ExplainList(ctx context.Context, q engine.ListQuery) (string, error) {
	sql, args := listStatement(q)
	var plan []string
	err := e.read(ctx, func(c *conn) error {
		return c.query("EXPLAIN QUERY PLAN "+sql, func(r *row) error {
			r.next = 3
			plan = append(plan, r.text())
			return nil
		}, args...)
	})
	return strings.Join(plan, "; "), err
}
