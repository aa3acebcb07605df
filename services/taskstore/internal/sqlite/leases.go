package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

// RenewLeases implements engine.Writer.
func (e *Engine) RenewLeases(ctx context.Context, holder string, refs []engine.LeaseRef, until time.Time) ([]engine.Renewal, error) {
	renewals := make([]engine.Renewal, len(refs))
	err := e.writeNext(ctx, func(c *conn) error {
		for i, ref := range refs {
			moved, err := c.exec(`
UPDATE leases
SET expires_at = ?
WHERE task_id = ?
	AND lease_epoch = ?
	AND holder = ?`, until, taskID(ref.TaskID), ref.Epoch, holder)
			if err != nil {
				return err
			}
			renewals[i].Held = moved == 1
			err = c.query(`SELECT state, message_version, lease_epoch FROM tasks WHERE id = ?`, func(r *row) error {
				renewals[i].State, renewals[i].MessageVersion = r.state(), r.int()
				renewals[i].Current = r.int() == ref.Epoch
				return nil
			}, taskID(ref.TaskID))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("renew leases: %w", err)
	}
	return renewals, nil
}

// LapsedLeases implements engine.Keeper.
func (e *Engine) LapsedLeases(ctx context.Context, now time.Time, limit int) ([]engine.LeaseRef, error) {
	var lapsed []engine.LeaseRef
	err := e.read(ctx, func(c *conn) error {
		return c.query(`SELECT task_id, lease_epoch FROM leases WHERE expires_at < ? ORDER BY expires_at LIMIT ?`, func(r *row) error {
			lapsed = append(lapsed, engine.LeaseRef{TaskID: r.id(), Epoch: r.int()})
			return nil
		}, now, limit)
	})
	if err != nil {
		return nil, fmt.Errorf("read lapsed leases: %w", err)
	}
	return lapsed, nil
}
