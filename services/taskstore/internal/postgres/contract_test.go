package postgres_test

import (
	"context"
	"flag"
	"strings"
	"testing"

	"github.com/errandhq/errand/pkg/testkit"
	"github.com/errandhq/errand/services/taskstore/internal/postgres"
	"github.com/errandhq/errand/services/taskstore/internal/storetest"
	"github.com/stretchr/testify/require"
)

// A part of the contract does not use all that the whole needs.
func TestContract(t *testing.T) { //nolint:tparallel // its indexes are looked at when all is over
	t.Parallel()
	url := newURL(t)
	t.Run("store", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) storetest.Database {
			t.Helper()
			return underTest(t, openDatabase(t, url))
		})
	})
	if _, part, _ := strings.Cut(flag.Lookup("test.run").Value.String(), "/"); part == "" {
		requireIndexesInUse(t, url)
	}
}

func TestContractBehindATransactionPooler(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Database {
		t.Helper()
		p := newTransactionPooler(t, testkit.Postgres(t), 3)
		require.NoError(t, postgres.Migrate(t.Context(), p.url("")))
		return underTest(t, openDatabase(t, p.url(anyPooler)))
	})
}

func underTest(t *testing.T, d *database) storetest.Database {
	t.Helper()
	pool := d.pool(t)
	return storetest.Database{Engine: d, Parallel: 4, Exec: func(ctx context.Context, sql string) error {
		_, err := pool.Exec(ctx, sql)
		return err
	}}
}
