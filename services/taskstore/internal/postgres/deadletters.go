package postgres

import (
	"context"
	"time"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

type deadLetterRow struct {
	TaskID         string
	Tenant         string
	Agent          string
	Owner          string
	ContextID      string
	Reason         string
	Attempts       int32
	LastHolder     string
	At             pgtype.Timestamptz
	RedrivenTaskID pgtype.UUID
	RedrivenAt     pgtype.Timestamptz
	RedrivenBy     string
}

func (r *deadLetterRow) deadLetter() engine.DeadLetter {
	return engine.DeadLetter{
		TaskID:     r.TaskID,
		Tenant:     r.Tenant,
		Agent:      r.Agent,
		Owner:      r.Owner,
		ContextID:  r.ContextID,
		Reason:     r.Reason,
		Attempts:   r.Attempts,
		LastHolder: r.LastHolder,
		At:         moment(r.At),
		Redrive:    engine.Redrive{TaskID: r.RedrivenTaskID.String(), At: moment(r.RedrivenAt), By: r.RedrivenBy},
	}
}

// ReadDeadLetter reads a task's dead letter.
func (e *Engine) ReadDeadLetter(ctx context.Context, id string) (engine.DeadLetter, error) {
	row, err := readOne[deadLetterRow](ctx, e, "read dead letter", sqlReadDeadLetter, args{"task_id": taskID(id)})
	if err != nil {
		return engine.DeadLetter{}, err
	}
	return row.deadLetter(), nil
}

// ListDeadLetters reads a page of dead letters.
func (e *Engine) ListDeadLetters(ctx context.Context, q engine.DeadLetterQuery) ([]engine.DeadLetter, error) {
	var letters []engine.DeadLetter
	err := e.snapshot(ctx, "list dead letters", func(batch *pgx.Batch) {
		queue(batch, sqlListDeadLetters, withLimit(deadLetterFilter(q), q.Limit), func(rows []*deadLetterRow) {
			letters = column(rows, (*deadLetterRow).deadLetter)
		})
	})
	return letters, err
}

// deadLetterFilter gives the arguments of a listing; NULL doesn't limit.
func deadLetterFilter(q engine.DeadLetterQuery) args {
	a := args{
		"since": pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true},
		"until": pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true},
		// No letter of the upper bound itself, unless a page ended there.
		"after_id": pgtype.UUID{Bytes: uuid.Max, Valid: true},
		"tenant":   given(q.Tenant), "agent": given(q.Agent), "reason": given(q.Reason),
		"redriven": q.Redriven,
	}
	if !q.Since.IsZero() {
		a["since"] = stamp(q.Since)
	}
	if !q.Until.IsZero() {
		a["until"] = stamp(q.Until)
	}
	if q.BeforeID != "" {
		a["until"], a["after_id"] = stamp(q.BeforeTime), taskID(q.BeforeID)
	}
	return a
}

// given encodes a filter; empty becomes NULL.
func given(s string) pgtype.Text {
	text := key(s)
	text.Valid = text.Valid && s != ""
	return text
}

// PurgeDeadLetters deletes dead letters from before a time.
func (e *Engine) PurgeDeadLetters(ctx context.Context, before time.Time, limit int) (int, error) {
	return e.purge(ctx, "purge dead letters", sqlPurgeDeadLetters, before, limit)
}

func queueDeadLetters(batch *pgx.Batch, taskIDs []string, loaded *engine.Loaded) {
	loaded.DeadLetters = make(map[string]engine.DeadLetter, len(taskIDs))
	if len(taskIDs) == 0 {
		return
	}
	queue(batch, sqlLockDeadLetters, args{"task_ids": column(taskIDs, taskID)}, func(rows []*deadLetterRow) {
		for _, r := range rows {
			loaded.DeadLetters[r.TaskID] = r.deadLetter()
		}
	})
}

func deadLetterColumns(letters []engine.DeadLetter) args {
	return args{
		"task_ids":     column(letters, func(l engine.DeadLetter) pgtype.UUID { return taskID(l.TaskID) }),
		"tenants":      column(letters, func(l engine.DeadLetter) string { return l.Tenant }),
		"agents":       column(letters, func(l engine.DeadLetter) string { return l.Agent }),
		"owners":       column(letters, func(l engine.DeadLetter) string { return l.Owner }),
		"context_ids":  column(letters, func(l engine.DeadLetter) string { return l.ContextID }),
		"reasons":      column(letters, func(l engine.DeadLetter) string { return l.Reason }),
		"attempts":     column(letters, func(l engine.DeadLetter) int32 { return l.Attempts }),
		"last_holders": column(letters, func(l engine.DeadLetter) string { return l.LastHolder }),
		"ats":          column(letters, func(l engine.DeadLetter) pgtype.Timestamptz { return stamp(l.At) }),
	}
}

func redriveColumns(letters []engine.DeadLetter) args {
	return args{
		"task_ids":          column(letters, func(l engine.DeadLetter) pgtype.UUID { return taskID(l.TaskID) }),
		"redriven_task_ids": column(letters, func(l engine.DeadLetter) pgtype.UUID { return taskID(l.Redrive.TaskID) }),
		"redriven_ats":      column(letters, func(l engine.DeadLetter) pgtype.Timestamptz { return stamp(l.Redrive.At) }),
		"redriven_bys":      column(letters, func(l engine.DeadLetter) string { return l.Redrive.By }),
		"wanted":            int64(len(letters)),
	}
}
