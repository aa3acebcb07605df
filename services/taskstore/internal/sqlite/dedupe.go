package sqlite

import (
	"context"
	"fmt"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

const dedupeColumns = `tenant, subject, agent, message_id, fingerprint, task_id, direct_id, accepted_version, created_at`

// ReadDedupe implements engine.Reader.
func (e *Engine) ReadDedupe(ctx context.Context, key engine.DedupeKey) (engine.Dedupe, error) {
	var found *engine.Dedupe
	err := e.read(ctx, func(c *conn) (err error) {
		found, err = c.findDedupe(key)
		return err
	})
	if err != nil {
		return engine.Dedupe{}, fmt.Errorf("read dedupe key: %w", err)
	}
	if found == nil {
		return engine.Dedupe{}, engine.ErrNotFound
	}
	return *found, nil
}

func (c *conn) findDedupe(key engine.DedupeKey) (*engine.Dedupe, error) {
	var found *engine.Dedupe
	err := c.query(`
SELECT `+dedupeColumns+`
FROM dedupe_keys
WHERE tenant = ?
	AND subject = ?
	AND agent = ?
	AND message_id = ?`, func(r *row) error {
		found = &engine.Dedupe{
			DedupeKey:   engine.DedupeKey{Tenant: r.text(), Subject: r.text(), Agent: r.text(), MessageID: r.text()},
			Fingerprint: r.blob(), TaskID: r.id(), DirectID: r.text(), AcceptedVersion: r.int(), CreatedAt: r.time(),
		}
		return nil
	}, key.Tenant, key.Subject, key.Agent, key.MessageID)
	return found, err
}

func (c *conn) updateDedupe(d engine.Dedupe) error {
	_, err := c.exec(`
UPDATE dedupe_keys
SET task_id = ?, direct_id = ?, accepted_version = ?
WHERE tenant = ?
	AND subject = ?
	AND agent = ?
	AND message_id = ?`,
		taskID(d.TaskID), d.DirectID, d.AcceptedVersion, d.Tenant, d.Subject, d.Agent, d.MessageID)
	return err
}

func (c *conn) dropDedupe(k engine.DedupeKey) error {
	_, err := c.exec(`DELETE FROM dedupe_keys WHERE tenant = ? AND subject = ? AND agent = ? AND message_id = ?`,
		k.Tenant, k.Subject, k.Agent, k.MessageID)
	return err
}
