package sqlite

import (
	"context"
	"fmt"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

const directColumns = `id, tenant, owner, agent, context_id, created_at, message, reply`

func scanDirect(r *row) engine.Direct {
	return engine.Direct{
		ID:        r.text(),
		Key:       engine.ContextKey{Tenant: r.text(), Owner: r.text(), Agent: r.text(), ContextID: r.text()},
		CreatedAt: r.time(), Message: r.blob(), Reply: r.blob(),
	}
}

// ReadDirect implements engine.Reader.
func (e *Engine) ReadDirect(ctx context.Context, tenant, id string) (engine.Direct, error) {
	var found []engine.Direct
	err := e.read(ctx, func(c *conn) error {
		return c.query(`SELECT `+directColumns+` FROM direct_messages WHERE tenant = ? AND id = ?`, func(r *row) error {
			found = append(found, scanDirect(r))
			return nil
		}, tenant, id)
	})
	if err != nil {
		return engine.Direct{}, fmt.Errorf("read direct message: %w", err)
	}
	if len(found) == 0 {
		return engine.Direct{}, engine.ErrNotFound
	}
	return found[0], nil
}

func (c *conn) insertDirect(d engine.Direct) error {
	_, err := c.exec(`INSERT INTO direct_messages (`+directColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		d.ID, d.Key.Tenant, d.Key.Owner, d.Key.Agent, d.Key.ContextID, d.CreatedAt, notNull(d.Message), notNull(d.Reply))
	return err
}
