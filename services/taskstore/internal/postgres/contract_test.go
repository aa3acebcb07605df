package postgres_test

import (
	"context"
	"testing"

	"github.com/errandhq/errand/services/taskstore/internal/storetest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Database {
		t.Helper()
		return underTest(t, newDatabase(t))
	})
}

func TestContractBehindATransactionPooler(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Database {
		t.Helper()
		p := newPooler(t, newURL(t), 3)
		return underTest(t, openDatabase(t, p.url("pool_max_conns=20&default_query_exec_mode=cache_describe")))
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
