package postgres

import (
	"context"
	"time"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// BeatPublisher records that a publisher lives and how far it has published.
func (e *Engine) BeatPublisher(ctx context.Context, publisher string, through int64, now time.Time) error {
	return e.change(ctx, "beat publisher", func(batch *pgx.Batch) {
		batch.Queue(sqlBeatPublisher.text, sqlBeatPublisher.with(args{
			"publisher": publisher, "through": through, "now": stamp(now),
		}))
	})
}

// AdvancePublisher records how far a publisher's events are published.
func (e *Engine) AdvancePublisher(ctx context.Context, publisher string, through int64) error {
	return e.change(ctx, "advance publisher", func(batch *pgx.Batch) {
		batch.Queue(sqlAdvancePublisher.text, sqlAdvancePublisher.with(args{"publisher": publisher, "through": through}))
	})
}

// StalePublishers reads publishers that have not beaten since before.
func (e *Engine) StalePublishers(ctx context.Context, before time.Time) ([]engine.Publisher, error) {
	var publishers []engine.Publisher
	err := e.snapshot(ctx, "read stale publishers", func(batch *pgx.Batch) {
		queue(batch, sqlStalePublishers, args{"before": stamp(before)}, func(rows []*publisherRow) {
			publishers = column(rows, func(r *publisherRow) engine.Publisher {
				return engine.Publisher{ID: r.ID, Through: r.PublishedThrough, BeatAt: moment(r.BeatAt)}
			})
		})
	})
	return publishers, err
}

type publisherRow struct {
	ID               string
	PublishedThrough int64
	BeatAt           pgtype.Timestamptz
}

// ReadOutbox reads a publisher's events above a number, in order.
func (e *Engine) ReadOutbox(ctx context.Context, publisher string, after int64, limit int) ([]engine.Event, error) {
	var events []engine.Event
	err := e.snapshot(ctx, "read outbox", func(batch *pgx.Batch) {
		queue(batch, sqlReadOutbox, withLimit(args{"publisher": publisher, "after": after}, limit), func(rows []*eventRow) {
			events = column(rows, (*eventRow).event)
		})
	})
	return events, err
}

// DropPublisher forgets a publisher, unless it has events above its mark.
func (e *Engine) DropPublisher(ctx context.Context, publisher string) error {
	return e.change(ctx, "drop publisher", func(batch *pgx.Batch) {
		batch.Queue(sqlDropPublisher.text, sqlDropPublisher.with(args{"publisher": publisher}))
	})
}

// OutboxLag reads how many events are not known to be published.
func (e *Engine) OutboxLag(ctx context.Context, atMost int) (int, time.Time, error) {
	var lag lagRow
	err := e.snapshot(ctx, "read outbox lag", func(batch *pgx.Batch) {
		queueOne(batch, sqlOutboxLag, withLimit(nil, atMost), func(r *lagRow) { lag = *r })
	})
	return min(int(lag.Events), atMost), moment(lag.Oldest), err
}

type lagRow struct {
	Events int64
	Oldest pgtype.Timestamptz
}
