package postgres

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// queue adds a query to a batch; keep is given its rows, read by column name.
func queue[Row any](batch *pgx.Batch, s *statement, a args, keep func([]*Row)) {
	batch.Queue(s.text, s.with(a)).Query(func(rows pgx.Rows) error {
		found, err := pgx.CollectRows(rows, pgx.RowToAddrOfStructByName[Row])
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		keep(found)
		return nil
	})
}

func queueDedupe(batch *pgx.Batch, reserve []engine.Dedupe, loaded *engine.Loaded) {
	if len(reserve) == 0 {
		return
	}
	reserve = slices.SortedFunc(slices.Values(reserve), func(a, b engine.Dedupe) int {
		return compareDedupeKeys(a.DedupeKey, b.DedupeKey)
	})
	loaded.Reserved = map[engine.DedupeKey]bool{}
	queue(batch, sqlReserveDedupe, dedupeColumns(reserve), func(rows []*dedupeKeyRow) {
		for _, r := range rows {
			loaded.Reserved[engine.DedupeKey(*r)] = true
		}
	})
	keys := column(reserve, func(d engine.Dedupe) engine.DedupeKey { return d.DedupeKey })
	loaded.Known = map[engine.DedupeKey]engine.Dedupe{}
	queue(batch, sqlLoadDedupe, dedupeKeyColumns(keys), func(rows []*dedupeRow) {
		for _, r := range rows {
			if d := r.dedupe(); !loaded.Reserved[d.DedupeKey] {
				loaded.Known[d.DedupeKey] = d
			}
		}
	})
}

func queueTasks(batch *pgx.Batch, keys []engine.TaskKey, loaded *engine.Loaded) {
	loaded.Tasks = make(map[string]*engine.Task, len(keys))
	if len(keys) == 0 {
		return
	}
	queue(batch, sqlLockTasks, args{
		"ids":     column(keys, func(k engine.TaskKey) pgtype.UUID { return taskID(k.ID) }),
		"tenants": column(keys, func(k engine.TaskKey) pgtype.Text { return key(k.Scope.Tenant) }),
		"agents":  column(keys, func(k engine.TaskKey) pgtype.Text { return key(k.Scope.Agent) }),
		"owners":  column(keys, func(k engine.TaskKey) pgtype.Text { return key(k.Scope.Owner) }),
	}, func(rows []*taskRow) {
		for _, r := range rows {
			loaded.Tasks[r.ID] = r.task()
		}
	})
}

func queueLeases(batch *pgx.Batch, taskIDs []string, loaded *engine.Loaded) {
	loaded.Leases = make(map[string]engine.Lease, len(taskIDs))
	if len(taskIDs) == 0 {
		return
	}
	queue(batch, sqlLockLeases, args{"task_ids": column(taskIDs, taskID)}, func(rows []*leaseRow) {
		for _, r := range rows {
			loaded.Leases[r.TaskID] = r.lease()
		}
	})
}

func queueArtifacts(batch *pgx.Batch, keys []engine.ArtifactKey, loaded *engine.Loaded) {
	loaded.Artifacts = make(map[engine.ArtifactKey]engine.ArtifactHead, len(keys))
	if len(keys) == 0 {
		return
	}
	queue(batch, sqlLoadArtifacts, artifactKeyColumns(keys), func(rows []*artifactRow) {
		for _, r := range rows {
			key := engine.ArtifactKey{TaskID: r.TaskID, ArtifactID: r.ArtifactID}
			loaded.Artifacts[key] = engine.ArtifactHead{Position: r.Position, Bytes: r.Total}
		}
	})
}

func queueContexts(batch *pgx.Batch, keys []engine.ContextKey, loaded *engine.Loaded) {
	loaded.Contexts = make(map[engine.ContextKey]*engine.Context, len(keys))
	if len(keys) == 0 {
		return
	}
	queue(batch, sqlLockContexts, contextKeyColumns(keys), func(rows []*contextRow) {
		for _, r := range rows {
			c := r.context()
			loaded.Contexts[c.ContextKey] = c
		}
	})
}

func compareDedupeKeys(a, b engine.DedupeKey) int {
	return cmp.Or(
		cmp.Compare(a.Tenant, b.Tenant),
		cmp.Compare(a.Subject, b.Subject),
		cmp.Compare(a.Agent, b.Agent),
		cmp.Compare(a.MessageID, b.MessageID),
	)
}

func compareContextKeys(a, b engine.ContextKey) int {
	return cmp.Or(
		cmp.Compare(a.Tenant, b.Tenant),
		cmp.Compare(a.Owner, b.Owner),
		cmp.Compare(a.Agent, b.Agent),
		cmp.Compare(a.ContextID, b.ContextID),
	)
}
