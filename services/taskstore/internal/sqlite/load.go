package sqlite

import (
	"fmt"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

func load(c *conn, sel engine.Selection) (*engine.Loaded, error) {
	l := &engine.Loaded{
		Reserved:  make(map[engine.DedupeKey]bool, len(sel.Reserve)),
		Known:     map[engine.DedupeKey]engine.Dedupe{},
		Tasks:     make(map[string]*engine.Task, len(sel.Tasks)),
		Leases:    make(map[string]engine.Lease, len(sel.Leases)),
		Artifacts: make(map[engine.ArtifactKey]engine.ArtifactHead, len(sel.Artifacts)),
		Contexts:  make(map[engine.ContextKey]*engine.Context, len(sel.Contexts)),

		DeadLetters: make(map[string]engine.DeadLetter, len(sel.DeadLetters)),
	}
	for _, d := range sel.Reserve {
		if err := c.reserve(d, l); err != nil {
			return nil, fmt.Errorf("reserve message: %w", err)
		}
	}
	for _, key := range sel.Tasks {
		t, err := c.findTask(key.Scope, key.ID)
		if err != nil {
			return nil, fmt.Errorf("read task: %w", err)
		}
		if t != nil {
			l.Tasks[key.ID] = t
		}
	}
	if err := c.probe(sel, l); err != nil {
		return nil, err
	}
	for _, key := range sel.Contexts {
		found, err := c.findContext(key)
		if err != nil {
			return nil, fmt.Errorf("read context: %w", err)
		}
		if found != nil {
			l.Contexts[key] = found
		}
	}
	return l, c.loadDeadLetters(sel.DeadLetters, l)
}

func (c *conn) reserve(d engine.Dedupe, l *engine.Loaded) error {
	inserted, err := c.exec(`
INSERT INTO dedupe_keys (`+dedupeColumns+`)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING`,
		d.Tenant, d.Subject, d.Agent, d.MessageID, notNull(d.Fingerprint), taskID(d.TaskID), d.DirectID, d.AcceptedVersion, d.CreatedAt)
	if err != nil {
		return err
	}
	if inserted == 1 {
		l.Reserved[d.DedupeKey] = true
		return nil
	}
	known, err := c.findDedupe(d.DedupeKey)
	if err != nil {
		return err
	}
	l.Known[d.DedupeKey] = *known
	return nil
}

func (c *conn) probe(sel engine.Selection, l *engine.Loaded) error {
	for _, id := range sel.Leases {
		err := c.query(`SELECT task_id, lease_epoch, holder, expires_at FROM leases WHERE task_id = ?`, func(r *row) error {
			l.Leases[id] = engine.Lease{LeaseRef: engine.LeaseRef{TaskID: r.id(), Epoch: r.int()}, Holder: r.text(), ExpiresAt: r.time()}
			return nil
		}, taskID(id))
		if err != nil {
			return fmt.Errorf("read lease: %w", err)
		}
	}
	for _, key := range sel.Artifacts {
		err := c.query(`
SELECT position, total
FROM artifact_chunks
WHERE task_id = ?
	AND artifact_id = ?
ORDER BY version DESC
LIMIT 1`, func(r *row) error {
			l.Artifacts[key] = engine.ArtifactHead{Position: r.int(), Bytes: r.int()}
			return nil
		}, taskID(key.TaskID), key.ArtifactID)
		if err != nil {
			return fmt.Errorf("probe artifact: %w", err)
		}
	}
	return nil
}

// notNull stores missing bytes as empty ones.
func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
