package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// snapshot runs queries that all see the same moment, in one round trip.
func (e *Engine) snapshot(ctx context.Context, what string, queries func(*pgx.Batch)) error {
	return e.transaction(ctx, what, sqlBeginSnapshot, sqlSteadyPlan, queries)
}

// change runs statements that decide nothing on what they read, in one round
// trip. It may run twice, so they must not mind.
func (e *Engine) change(ctx context.Context, what string, statements func(*pgx.Batch)) error {
	return e.transaction(ctx, what, sqlBeginUpdate, sqlSteadyPlan, statements)
}

// transaction runs statements between BEGIN and COMMIT, planned under settings.
func (e *Engine) transaction(ctx context.Context, what string, begin, settings *statement, statements func(*pgx.Batch)) error {
	return e.do(ctx, what, func(conn *pgxpool.Conn) error {
		ctx, cancel := e.patience.forAnswer(ctx)
		defer cancel()
		batch := &pgx.Batch{}
		batch.Queue(begin.text)
		batch.Queue(settings.text, settings.with(e.patience.limits()))
		statements(batch)
		batch.Queue(sqlCommit.text)
		err := conn.SendBatch(ctx, batch).Close()
		if err != nil {
			abandon(ctx, conn)
		}
		return err
	})
}

// queueOne adds a query of at most one row; keep is not called when there is none.
func queueOne[Row any](batch *pgx.Batch, s *statement, a args, keep func(*Row)) {
	queue(batch, s, a, func(rows []*Row) {
		if len(rows) > 0 {
			keep(rows[0])
		}
	})
}

// queueValues adds a query of one column.
func queueValues[Value any](batch *pgx.Batch, s *statement, a args, keep func([]Value)) {
	batch.Queue(s.text, s.with(a)).Query(func(rows pgx.Rows) error {
		values, err := pgx.CollectRows(rows, pgx.RowTo[Value])
		if err != nil {
			return err
		}
		keep(values)
		return nil
	})
}
