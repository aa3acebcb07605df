package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

// BeatPublisher implements engine.Outbox.
func (e *Engine) BeatPublisher(ctx context.Context, publisher string, through int64, now time.Time) error {
	_, err := e.change(ctx, `
INSERT INTO publishers (id, published_through, beat_at)
VALUES (?, ?, ?)
ON CONFLICT (id) DO UPDATE
SET published_through = max(published_through, excluded.published_through), beat_at = excluded.beat_at`,
		publisher, through, now)
	if err != nil {
		return fmt.Errorf("beat publisher: %w", err)
	}
	return nil
}

// StalePublishers implements engine.Outbox.
func (e *Engine) StalePublishers(ctx context.Context, before time.Time) ([]engine.Publisher, error) {
	var stale []engine.Publisher
	err := e.read(ctx, func(c *conn) error {
		return c.query(`SELECT id, published_through, beat_at FROM publishers WHERE beat_at < ? ORDER BY beat_at`, func(r *row) error {
			stale = append(stale, engine.Publisher{ID: r.text(), Through: r.int(), BeatAt: r.time()})
			return nil
		}, before)
	})
	if err != nil {
		return nil, fmt.Errorf("read stale publishers: %w", err)
	}
	return stale, nil
}

// ReadOutbox implements engine.Outbox.
func (e *Engine) ReadOutbox(ctx context.Context, publisher string, after int64, limit int) ([]engine.Event, error) {
	var events []engine.Event
	err := e.read(ctx, func(c *conn) error {
		return c.query(`SELECT `+eventColumns+` FROM events WHERE publisher = ? AND publish_seq > ? ORDER BY publish_seq LIMIT ?`, func(r *row) error {
			events = append(events, scanEvent(r))
			return nil
		}, publisher, after, limit)
	})
	if err != nil {
		return nil, fmt.Errorf("read outbox: %w", err)
	}
	return events, nil
}

// AdvancePublisher implements engine.Outbox.
func (e *Engine) AdvancePublisher(ctx context.Context, publisher string, through int64) error {
	_, err := e.change(ctx, `
UPDATE publishers
SET published_through = max(published_through, ?)
WHERE id = ?`, through, publisher)
	if err != nil {
		return fmt.Errorf("advance publisher: %w", err)
	}
	return nil
}

// DropPublisher implements engine.Outbox.
func (e *Engine) DropPublisher(ctx context.Context, publisher string) error {
	_, err := e.change(ctx, `
DELETE FROM publishers
WHERE id = ?
	AND NOT EXISTS (
		SELECT 1
		FROM events
		WHERE events.publisher = publishers.id
			AND events.publish_seq > publishers.published_through
	)`, publisher)
	if err != nil {
		return fmt.Errorf("drop publisher: %w", err)
	}
	return nil
}

// OutboxLag implements engine.Outbox.
func (e *Engine) OutboxLag(ctx context.Context, atMost int) (int, time.Time, error) {
	var lag int
	var oldest time.Time
	err := e.read(ctx, func(c *conn) error {
		return c.query(`
SELECT count(*), min(created_at)
FROM (
	SELECT events.created_at
	FROM publishers
	CROSS JOIN events INDEXED BY events_outbox ON events.publisher = publishers.id
	WHERE events.publish_seq > publishers.published_through
	ORDER BY events.publisher, events.publish_seq
	LIMIT ?
)`, func(r *row) error {
			lag, oldest = int(r.int()), r.time()
			return nil
		}, atMost)
	})
	if err != nil {
		return 0, time.Time{}, fmt.Errorf("read outbox lag: %w", err)
	}
	return lag, oldest, nil
}
