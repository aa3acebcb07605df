package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// PurgeDedupe deletes records of tasks that ended, or of direct Messages that were
// stored, before a time.
func (e *Engine) PurgeDedupe(ctx context.Context, before time.Time, limit int) (int, error) {
	return e.purge(ctx, "purge dedupe records", sqlPurgeDedupe, before, limit)
}

// PurgeDirects deletes direct exchanges stored before a time.
func (e *Engine) PurgeDirects(ctx context.Context, before time.Time, limit int) (int, error) {
	return e.purge(ctx, "purge direct messages", sqlPurgeDirects, before, limit)
}

// PurgeContexts deletes contexts that expired before a time.
func (e *Engine) PurgeContexts(ctx context.Context, before time.Time, limit int) (int, error) {
	return e.purge(ctx, "purge contexts", sqlPurgeContexts, before, limit)
}

// purge runs a statement that deletes up to limit rows and tells how many it was.
func (e *Engine) purge(ctx context.Context, what string, s *statement, before time.Time, limit int) (int, error) {
	var deleted int64
	err := e.change(ctx, what, func(batch *pgx.Batch) {
		batch.Queue(s.text, s.with(withLimit(args{"before": stamp(before)}, limit))).Exec(func(tag pgconn.CommandTag) error {
			deleted = tag.RowsAffected()
			return nil
		})
	})
	return int(deleted), err
}
