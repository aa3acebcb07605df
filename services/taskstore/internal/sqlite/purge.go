package sqlite

import (
	"context"
	"fmt"
	"time"
)

// eventsAtOnce is how many events one transaction deletes: other writers wait
// for it.
const eventsAtOnce = 1000

// PurgeDedupe implements engine.Keeper.
func (e *Engine) PurgeDedupe(ctx context.Context, before time.Time, limit int) (int, error) {
	return e.purge(ctx, "dedupe keys", `
DELETE FROM dedupe_keys
WHERE (tenant, subject, agent, message_id) IN (
	SELECT k.tenant, k.subject, k.agent, k.message_id
	FROM dedupe_keys AS k
	LEFT JOIN tasks AS t ON t.id = k.task_id
	WHERE k.created_at < ?1
		AND (k.task_id IS NULL OR t.terminal_at < ?1)
	ORDER BY k.created_at
	LIMIT ?2
)`, before, limit)
}

// PurgeDirects implements engine.Keeper.
func (e *Engine) PurgeDirects(ctx context.Context, before time.Time, limit int) (int, error) {
	return e.purge(ctx, "direct messages", `
DELETE FROM direct_messages
WHERE rowid IN (SELECT rowid FROM direct_messages WHERE created_at < ? ORDER BY created_at LIMIT ?)`, before, limit)
}

// PurgeContexts implements engine.Keeper.
func (e *Engine) PurgeContexts(ctx context.Context, before time.Time, limit int) (int, error) {
	return e.purge(ctx, "contexts", `
DELETE FROM contexts
WHERE rowid IN (SELECT rowid FROM contexts WHERE expires_at < ? ORDER BY expires_at LIMIT ?)`, before, limit)
}

// PurgeEvents implements engine.Keeper. Rows lie in the order of their age, so
// that the old ones are found without an index; those that are still to be
// published are passed over.
func (e *Engine) PurgeEvents(ctx context.Context, _, before time.Time) error {
	var last int64
	for old := int64(eventsAtOnce); old == eventsAtOnce; {
		err := e.write(ctx, func(c *conn) (err error) {
			last, old, err = c.purgeEvents(last, before)
			return err
		})
		if err != nil {
			return fmt.Errorf("purge events: %w", err)
		}
	}
	return nil
}

// purgeEvents looks at the events that follow a row, and tells where it stopped
// and how many of them were old.
func (c *conn) purgeEvents(after int64, before time.Time) (last, old int64, err error) {
	err = c.query(`
SELECT max(rowid), count(*) FILTER (WHERE created_at < ?)
FROM (SELECT rowid, created_at FROM events WHERE rowid > ? ORDER BY rowid LIMIT ?)`, func(r *row) error {
		last, old = r.int(), r.int()
		return nil
	}, before, after, eventsAtOnce)
	if err != nil {
		return 0, 0, err
	}
	_, err = c.exec(`
DELETE FROM events
WHERE rowid > ?
	AND rowid <= ?
	AND created_at < ?
	AND NOT EXISTS (
		SELECT 1
		FROM publishers
		WHERE publishers.id = events.publisher
			AND publishers.published_through < events.publish_seq
	)`, after, last, before)
	return last, old, err
}

func (e *Engine) purge(ctx context.Context, what, sql string, before time.Time, limit int) (int, error) {
	purged, err := e.change(ctx, sql, before, limit)
	if err != nil {
		return 0, fmt.Errorf("purge %s: %w", what, err)
	}
	return int(purged), nil
}
