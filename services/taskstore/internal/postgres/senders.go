package postgres

import (
	"context"
	"slices"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// readOne runs a query of at most one row.
func readOne[Row any](ctx context.Context, e *Engine, what string, s *statement, a args) (*Row, error) {
	var found *Row
	err := e.snapshot(ctx, what, func(batch *pgx.Batch) {
		queueOne(batch, s, a, func(r *Row) { found = r })
	})
	if err == nil && found == nil {
		err = engine.ErrNotFound
	}
	return found, err
}

// ReadDedupe reads what an accepted message became.
func (e *Engine) ReadDedupe(ctx context.Context, k engine.DedupeKey) (engine.Dedupe, error) {
	row, err := readOne[dedupeRow](ctx, e, "read dedupe record", sqlReadDedupe, args{
		"tenant":     key(k.Tenant),
		"subject":    key(k.Subject),
		"agent":      key(k.Agent),
		"message_id": key(k.MessageID),
	})
	if err != nil {
		return engine.Dedupe{}, err
	}
	return row.dedupe(), nil
}

// ReadDirect reads a direct exchange.
func (e *Engine) ReadDirect(ctx context.Context, tenant, id string) (engine.Direct, error) {
	row, err := readOne[directRow](ctx, e, "read direct message", sqlReadDirect, args{"tenant": key(tenant), "id": key(id)})
	if err != nil {
		return engine.Direct{}, err
	}
	return row.direct(), nil
}

// ReadContext reads a context.
func (e *Engine) ReadContext(ctx context.Context, k engine.ContextKey) (*engine.Context, error) {
	row, err := readOne[contextRow](ctx, e, "read context", sqlReadContext, contextArgs(k))
	if err != nil {
		return nil, err
	}
	return row.context(), nil
}

func contextArgs(k engine.ContextKey) args {
	return args{"tenant": key(k.Tenant), "owner": key(k.Owner), "agent": key(k.Agent), "context_id": key(k.ContextID)}
}

// ReadTurns reads a context's newest turns, newest first.
func (e *Engine) ReadTurns(ctx context.Context, k engine.ContextKey, limit int) ([]engine.Turn, error) {
	var turns []engine.Turn
	a := withLimit(contextArgs(k), limit)
	err := e.snapshot(ctx, "read turns", func(batch *pgx.Batch) {
		turns = nil
		queue(batch, sqlReadContextTasks, a, func(rows []*turnRow) {
			for _, r := range rows {
				turns = append(turns, engine.Turn{CreatedAt: moment(r.CreatedAt), TaskID: r.TaskID})
			}
		})
		queue(batch, sqlReadContextDirects, a, func(rows []*directRow) {
			for _, r := range rows {
				d := r.direct()
				turns = append(turns, engine.Turn{CreatedAt: d.CreatedAt, Direct: &d})
			}
		})
	})
	slices.SortStableFunc(turns, func(a, b engine.Turn) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return turns[:min(limit, len(turns))], err
}

type turnRow struct {
	TaskID    string
	CreatedAt pgtype.Timestamptz
}
