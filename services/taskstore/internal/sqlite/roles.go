package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

// HoldRole implements engine.Keeper.
func (e *Engine) HoldRole(ctx context.Context, role, holder string, now, until time.Time) (bool, error) {
	held, err := e.change(ctx, `
INSERT INTO roles (name, holder, expires_at)
VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE
SET holder = excluded.holder, expires_at = excluded.expires_at
WHERE roles.holder = excluded.holder
	OR roles.expires_at <= ?
	OR roles.expires_at > ?`, role, holder, until, now, until.Add(engine.RoleClockSlack))
	if err != nil {
		return false, fmt.Errorf("hold role %s: %w", role, err)
	}
	return held == 1, nil
}

// DropRole implements engine.Keeper.
func (e *Engine) DropRole(ctx context.Context, role, holder string) error {
	if _, err := e.change(ctx, `DELETE FROM roles WHERE name = ? AND holder = ?`, role, holder); err != nil {
		return fmt.Errorf("drop role %s: %w", role, err)
	}
	return nil
}

// change runs one statement in a transaction of its own.
func (e *Engine) change(ctx context.Context, sql string, args ...any) (changed int64, err error) {
	err = e.write(ctx, func(c *conn) error {
		changed, err = c.exec(sql, args...)
		return err
	})
	return changed, err
}
