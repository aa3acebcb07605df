package postgres_test

import (
	"slices"
	"testing"
	"time"

	"github.com/errandhq/errand/pkg/testkit"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What happens often to a row leaves its indexes alone: dead versions are then
// removed by whoever next reads the page, and vacuum has little to do.
func TestHeartbeatsAndProgressTouchNoIndex(t *testing.T) {
	t.Parallel()
	const tasks, rounds = 200, 20
	// A transaction that is open in any database of a server holds dead rows back.
	url := testkit.PostgresURL(newServer(t))
	d, at := openDatabase(t, url), now()
	running := &engine.Changes{}
	var refs []engine.LeaseRef
	var ids []string
	for range tasks {
		task := queuedTask(at)
		claim(task)
		ref := engine.LeaseRef{TaskID: task.ID, Epoch: task.LeaseEpoch}
		running.InsertTasks = append(running.InsertTasks, task)
		running.PutLeases = append(running.PutLeases, engine.Lease{LeaseRef: ref, Holder: task.Holder, ExpiresAt: at})
		refs, ids = append(refs, ref), append(ids, task.ID)
	}
	d.update(t, running)
	for i := range rounds {
		_, err := d.RenewLeases(t.Context(), "executor-1", refs, at.Add(time.Duration(i)*time.Second))
		require.NoError(t, err)
		for some := range slices.Chunk(ids, 8) {
			progress(t, d, some)
		}
	}
	d.Close() // connections tell their statistics when they end, at the latest

	d = openDatabase(t, url)
	for table, share := range map[string]float64{"leases": 0.99, "tasks": 0.9} {
		require.Eventually(t, func() bool {
			return one[int](t, d, "SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = $1", table) == tasks*rounds
		}, time.Minute, 10*time.Millisecond, table)
		hot := one[float64](t, d, "SELECT n_tup_hot_upd::float8 / n_tup_upd FROM pg_stat_user_tables WHERE relname = $1", table)
		require.GreaterOrEqual(t, hot, share, table)
	}
}

func progress(t *testing.T, d *database, ids []string) {
	t.Helper()
	require.NoError(t, d.Update(t.Context(), selectTasks(ids...), func(l *engine.Loaded) (*engine.Changes, error) {
		c := &engine.Changes{}
		for _, read := range l.Tasks {
			c.UpdateTasks = append(c.UpdateTasks, edited(read, func(t *engine.Task) { t.Version++; t.WriteSeq++ }))
		}
		return c, nil
	}))
}

func TestTransactionsAreShortUnderLoad(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	var oldest float64
	load(t, d, func() {
		for range 100 {
			oldest = max(oldest, one[float64](t, d, `
				SELECT coalesce(max(extract(epoch FROM now() - xact_start)), 0)::float8
				FROM pg_stat_activity
				WHERE datname = current_database() AND application_name = 'errand-taskstore'`))
		}
	})
	t.Log("the oldest transaction was", oldest, "s old")
	require.Less(t, oldest, 5., "seconds")
}

// requireIndexesInUse finds indexes that nothing has read of all that the database
// did. Partitions are left out: the default one stands for them.
func requireIndexesInUse(t *testing.T, url string) {
	t.Helper()
	d := openDatabase(t, url)
	require.NoError(t, d.PurgeEvents(t.Context(), now(), now()))
	unused := func() []string {
		return one[[]string](t, d, `
			SELECT coalesce(array_agg(indexrelname::text ORDER BY indexrelname), '{}')
			FROM pg_stat_user_indexes
			WHERE idx_scan = 0
			  AND relname NOT LIKE 'events\_2%'
			  AND relname NOT IN ('schema_lock', 'schema_versions')`)
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Empty(c, unused()) }, 20*time.Second, 100*time.Millisecond)
}
