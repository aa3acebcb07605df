package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/stretchr/testify/require"
)

func TestOneOfManyReservesAKeyAndTheOthersFindWhatItStored(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	other := openDatabase(t, d.url)
	at := now()
	for round := range 20 {
		key := engine.DedupeKey{Tenant: tenant, Subject: owner, Agent: agent, MessageID: fmt.Sprint(round)}
		outcomes := make([]string, 10)
		var racers sync.WaitGroup
		for i := range outcomes {
			e := d
			if i%2 == 1 {
				e = other
			}
			racers.Go(func() {
				sel := engine.Selection{Reserve: []engine.Dedupe{{DedupeKey: key, CreatedAt: at}}}
				err := e.Update(t.Context(), sel, func(l *engine.Loaded) (*engine.Changes, error) {
					if !l.Reserved[key] {
						outcomes[i] = l.Known[key].TaskID
						return nil, nil
					}
					task := queuedTask(at)
					outcomes[i] = task.ID
					return &engine.Changes{
						InsertTasks:  []*engine.Task{task},
						UpdateDedupe: []engine.Dedupe{{DedupeKey: key, TaskID: task.ID, AcceptedVersion: 1}},
					}, nil
				})
				if err != nil {
					outcomes[i] = err.Error()
				}
			})
		}
		racers.Wait()
		for _, outcome := range outcomes {
			require.Equal(t, outcomes[0], outcome)
		}
	}
	require.Equal(t, 20, one[int](t, d, "SELECT count(*) FROM tasks"))
}

// Two task stores work on the same few tasks, contexts and keys in batches, with
// heartbeats in between. Whatever they do, each change counts once and nobody
// deadlocks.
func TestMixedBatchesOfTwoStoresNeitherLoseAChangeNorDeadlock(t *testing.T) {
	t.Parallel()
	const workers, rounds = 10, 100
	d := newDatabase(t)
	stores := []*database{d, openDatabase(t, d.url)}
	at := now()
	created := &engine.Changes{}
	for i := range 12 {
		task := queuedTask(at)
		task.ID = taskID(byte(i))
		created.InsertTasks = append(created.InsertTasks, task)
	}
	d.update(t, created)

	var writers sync.WaitGroup
	errs := make([]error, workers)
	changed := make([]int64, workers)
	for w := range workers {
		writers.Go(func() {
			for range rounds {
				n, err := mixedBatch(t, stores[w%2])
				if err != nil {
					errs[w] = err
					return
				}
				changed[w] += n
			}
		})
	}
	writers.Wait()
	var total int64
	for w := range workers {
		require.NoError(t, errs[w])
		total += changed[w]
	}
	require.Equal(t, total, one[int64](t, d, "SELECT sum(version - 1)::bigint FROM tasks"))
	require.Zero(t, one[int](t, d, "SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()"))
}

// mixedBatch changes a random handful of rows and gives the number of new versions.
func mixedBatch(t *testing.T, d *database) (int64, error) {
	at := now()
	ids := make([]string, 0, 5)
	for _, n := range rand.Perm(12)[:1+rand.N(5)] {
		ids = append(ids, taskID(byte(n)))
	}
	sel := selectTasks(ids...)
	sel.Leases = ids
	var touched []engine.Context
	for _, n := range rand.Perm(6)[:3] {
		sel.Reserve = append(sel.Reserve, engine.Dedupe{
			DedupeKey: engine.DedupeKey{Tenant: tenant, Subject: owner, Agent: agent, MessageID: fmt.Sprint(n)}, CreatedAt: at,
		})
		touched = append(touched, engine.Context{
			ContextKey: engine.ContextKey{Tenant: tenant, Owner: owner, Agent: agent, ContextID: fmt.Sprint(n)},
			CreatedAt:  at, UpdatedAt: at, ExpiresAt: at,
		})
	}
	err := d.Update(t.Context(), sel, func(l *engine.Loaded) (*engine.Changes, error) {
		c := &engine.Changes{TouchContexts: touched}
		for key := range l.Reserved {
			c.DropDedupe = append(c.DropDedupe, key)
		}
		for _, id := range ids {
			read := l.Tasks[id]
			c.UpdateTasks = append(c.UpdateTasks, edited(read, func(t *engine.Task) { t.Version++ }))
			c.Events = append(c.Events, event(read, read.Version, read.Version))
			if _, leased := l.Leases[id]; leased {
				c.DropLeases = append(c.DropLeases, id)
				continue
			}
			c.PutLeases = append(c.PutLeases, engine.Lease{LeaseRef: engine.LeaseRef{TaskID: id, Epoch: 1}, Holder: "me", ExpiresAt: at})
		}
		return c, nil
	})
	if err != nil {
		return 0, err
	}
	refs := make([]engine.LeaseRef, 0, 12)
	for n := range 12 {
		refs = append(refs, engine.LeaseRef{TaskID: taskID(byte(n)), Epoch: 1})
	}
	_, err = d.RenewLeases(t.Context(), "me", refs, at)
	return int64(len(ids)), err
}
