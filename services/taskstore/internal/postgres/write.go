package postgres

import (
	"slices"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/jackc/pgx/v5"
)

// queueChanges adds the statements of an update's second half. Rows of tasks come
// first: what belongs to a task is checked against its new version.
func queueChanges(batch *pgx.Batch, c *engine.Changes) {
	if c == nil {
		return
	}
	write(batch, sqlInsertTasks, c.InsertTasks, allColumns)
	write(batch, sqlUpdateTasks, c.UpdateTasks, changedColumns)
	write(batch, sqlInsertMessages, c.Messages, messageColumns)
	write(batch, sqlDeleteArtifacts, c.DropArtifacts, artifactKeyColumns)
	write(batch, sqlInsertChunks, c.Chunks, chunkColumns)
	write(batch, sqlInsertEvents, c.Events, eventColumns)
	write(batch, sqlUpdateDedupe, c.UpdateDedupe, knownColumns)
	write(batch, sqlDeleteDedupe, c.DropDedupe, dedupeKeyColumns)
	write(batch, sqlPutLeases, c.PutLeases, leaseColumns)
	write(batch, sqlDeleteLeases, c.DropLeases, func(ids []string) args { return args{"task_ids": column(ids, taskID)} })
	write(batch, sqlInsertDirects, c.Directs, directColumns)
	write(batch, sqlTouchContexts, newestOfEach(c.TouchContexts), contextColumns)
	write(batch, sqlPutContexts, newestOfEach(c.PutContexts), contextColumns)
	write(batch, sqlInsertDeadLetters, c.DeadLetters, deadLetterColumns)
	write(batch, sqlRedriveDeadLetters, c.RedriveDeadLetters, redriveColumns)
}

func write[Row any](batch *pgx.Batch, s *statement, rows []Row, columns func([]Row) args) {
	if len(rows) > 0 {
		batch.Queue(s.text, s.with(columns(rows)))
	}
}

func knownColumns(records []engine.Dedupe) args {
	a := outcomeColumns(records)
	a["wanted"] = int64(len(records))
	return a
}

// newestOfEach puts contexts in the order in which they are locked. Several
// messages of a batch may touch one context; the last stands for all.
func newestOfEach(contexts []engine.Context) []engine.Context {
	newest := make(map[engine.ContextKey]engine.Context, len(contexts))
	for _, c := range contexts {
		newest[c.ContextKey] = c
	}
	keys := make([]engine.ContextKey, 0, len(newest))
	for key := range newest {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, compareContextKeys)
	return column(keys, func(k engine.ContextKey) engine.Context { return newest[k] })
}
