package postgres_test

import (
	"sync"
	"testing"

	"github.com/errandhq/errand/pkg/testkit"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/errandhq/errand/services/taskstore/internal/postgres"
	"github.com/stretchr/testify/require"
)

func TestADatabaseIsNotReadyUntilItIsMigrated(t *testing.T) {
	t.Parallel()
	d := openDatabase(t, testkit.Postgres(t))
	require.ErrorIs(t, d.Ping(t.Context()), postgres.ErrOldSchema)
	require.NoError(t, postgres.Migrate(t.Context(), d.url))
	require.NoError(t, d.Ping(t.Context()))

	require.NoError(t, d.sql(t, "DELETE FROM schema_versions WHERE version_id = $1", postgres.SchemaVersion()))
	require.ErrorIs(t, d.Ping(t.Context()), postgres.ErrOldSchema)
	require.NoError(t, d.sql(t, "INSERT INTO schema_versions (version_id, is_applied) VALUES ($1, true)", postgres.SchemaVersion()+1))
	require.NoError(t, d.Ping(t.Context()), "the next release may have migrated already")
}

func TestMigratingAgainAndTwiceAtOnceIsHarmless(t *testing.T) {
	t.Parallel()
	d := openDatabase(t, testkit.Postgres(t))
	var migrators sync.WaitGroup
	errs := make([]error, 3)
	for i := range errs {
		migrators.Go(func() { errs[i] = postgres.Migrate(t.Context(), d.url) })
	}
	migrators.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	live(t, d, "m")
	require.NoError(t, postgres.Migrate(t.Context(), d.url))
	require.Len(t, partitions(t, d), 6, "the current one, four ahead and the default")
}

// A cluster is upgraded while it runs: stores go on with the statements that they
// prepared, on tables that have grown a column meanwhile.
func TestAColumnIsAddedWhileStoresRun(t *testing.T) {
	t.Parallel()
	d := openDatabase(t, newURL(t)+"&pool_max_conns=1")
	letter := engine.DeadLetter{TaskID: taskID(1), Tenant: tenant, Agent: agent, Reason: "r", At: now()}
	d.update(t, &engine.Changes{DeadLetters: []engine.DeadLetter{letter}})
	useAll := func(message string) {
		t.Helper()
		live(t, d, message)
		_, err := d.ReadDeadLetter(t.Context(), letter.TaskID)
		require.NoError(t, err)
		letters, err := d.ListDeadLetters(t.Context(), engine.DeadLetterQuery{Limit: 1})
		require.NoError(t, err)
		require.Len(t, letters, 1)
		sel := engine.Selection{DeadLetters: []string{letter.TaskID}, Leases: []string{letter.TaskID}}
		require.NoError(t, d.Update(t.Context(), sel, decideOn(nil)))
		require.NoError(t, d.BeatPublisher(t.Context(), "store-1", 0, letter.At))
		_, err = d.StalePublishers(t.Context(), letter.At)
		require.NoError(t, err)
	}
	useAll("before")
	for _, table := range one[[]string](t, d, `
		SELECT array_agg(relname::text) FROM pg_class
		WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition AND relname NOT LIKE 'schema%'`) {
		require.NoError(t, d.sql(t, "ALTER TABLE "+table+" ADD COLUMN later text"))
	}
	useAll("after")
}
