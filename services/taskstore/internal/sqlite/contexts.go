package sqlite

import (
	"context"
	"fmt"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

const contextColumns = `tenant, owner, agent, context_id, state, revision, created_at, updated_at, expires_at`

const insertContext = `
INSERT INTO contexts (` + contextColumns + `)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, owner, agent, context_id) DO UPDATE
SET `

// ReadContext implements engine.Reader.
func (e *Engine) ReadContext(ctx context.Context, key engine.ContextKey) (*engine.Context, error) {
	var found *engine.Context
	err := e.read(ctx, func(c *conn) (err error) {
		found, err = c.findContext(key)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read context: %w", err)
	}
	if found == nil {
		return nil, engine.ErrNotFound
	}
	return found, nil
}

func (c *conn) findContext(key engine.ContextKey) (*engine.Context, error) {
	var found *engine.Context
	err := c.query(`
SELECT `+contextColumns+`
FROM contexts
WHERE tenant = ?
	AND owner = ?
	AND agent = ?
	AND context_id = ?`, func(r *row) error {
		found = &engine.Context{
			ContextKey: engine.ContextKey{Tenant: r.text(), Owner: r.text(), Agent: r.text(), ContextID: r.text()},
			State:      r.blob(), Revision: r.int(), CreatedAt: r.time(), UpdatedAt: r.time(), ExpiresAt: r.time(),
		}
		return nil
	}, key.Tenant, key.Owner, key.Agent, key.ContextID)
	return found, err
}

func (c *conn) touchContext(x engine.Context) error {
	_, err := c.exec(insertContext+`updated_at = excluded.updated_at, expires_at = excluded.expires_at`, contextValues(x)...)
	return err
}

func (c *conn) putContext(x engine.Context) error {
	_, err := c.exec(insertContext+`state = excluded.state, revision = excluded.revision,
	created_at = excluded.created_at, updated_at = excluded.updated_at, expires_at = excluded.expires_at`, contextValues(x)...)
	return err
}

func contextValues(x engine.Context) []any {
	return []any{x.Tenant, x.Owner, x.Agent, x.ContextID, x.State, x.Revision, x.CreatedAt, x.UpdatedAt, x.ExpiresAt}
}
