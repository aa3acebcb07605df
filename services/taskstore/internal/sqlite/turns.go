package sqlite

import (
	"context"
	"fmt"
	"slices"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

// ReadTurns implements engine.Reader.
func (e *Engine) ReadTurns(ctx context.Context, key engine.ContextKey, limit int) ([]engine.Turn, error) {
	var turns []engine.Turn
	args := []any{key.Tenant, key.Agent, key.ContextID, key.Owner, limit}
	const within = ` WHERE tenant = ? AND agent = ? AND context_id = ? AND owner = ? ORDER BY created_at DESC, id DESC LIMIT ?`
	err := e.read(ctx, func(c *conn) error {
		err := c.query(`SELECT created_at, id FROM tasks`+within, func(r *row) error {
			turns = append(turns, engine.Turn{CreatedAt: r.time(), TaskID: r.id()})
			return nil
		}, args...)
		if err != nil {
			return err
		}
		return c.query(`SELECT `+directColumns+` FROM direct_messages`+within, func(r *row) error {
			d := scanDirect(r)
			turns = append(turns, engine.Turn{CreatedAt: d.CreatedAt, Direct: &d})
			return nil
		}, args...)
	})
	if err != nil {
		return nil, fmt.Errorf("read turns: %w", err)
	}
	slices.SortStableFunc(turns, func(a, b engine.Turn) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return turns[:min(limit, len(turns))], nil
}
