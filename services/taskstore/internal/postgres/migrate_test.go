package postgres_test

import (
	"sync"
	"testing"

	"github.com/errandhq/errand/pkg/testkit"
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
