package postgres_test

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/errandhq/errand/pkg/testkit"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/errandhq/errand/services/taskstore/internal/postgres"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// lifecyclesVariable names how many tasks are taken through their lives to see what
// they leave behind; 200,000 take a minute or two.
const lifecyclesVariable = "ERRAND_BENCH_LIFECYCLES"

const (
	bloatBatch   = 64
	bloatCallers = 4
)

// What many short lives leave behind, with autovacuum on. The figures are had by
//
//	ERRAND_BENCH_LIFECYCLES=200000 go test -run '^$' -bench Bloat -benchtime 1x ./taskstore/internal/postgres
//
// in the folder services, on a server of the benchmark's own.
func BenchmarkBloat(b *testing.B) {
	tasks, err := strconv.Atoi(cmp.Or(os.Getenv(lifecyclesVariable), "20000"))
	require.NoError(b, err, lifecyclesVariable)
	server := testkit.NewPostgresServer(b)
	// As deploy/postgres says.
	server.Exec("ALTER SYSTEM SET autovacuum_naptime = '15s'")
	server.Exec("SELECT pg_reload_conf()")
	url := testkit.PostgresURL(server)
	require.NoError(b, postgres.Migrate(b.Context(), url))
	d := openDatabase(b, url)
	b.ResetTimer()
	for range b.N {
		runMany(b, d, tasks)
	}
	b.ReportMetric(float64(b.N*tasks)/b.Elapsed().Seconds(), "tasks/s")
	b.StopTimer()
	d.Close() // connections tell their statistics when they end, at the latest
	reportBloat(b, d)
}

func runMany(b *testing.B, d *database, tasks int) {
	b.Helper()
	var seq atomic.Int64
	var callers sync.WaitGroup
	for range bloatCallers {
		callers.Go(func() {
			for range tasks / bloatBatch / bloatCallers {
				tasks := begin(b, d, bloatBatch, &seq)
				step(b, d, tasks, write, writeChunk)
				complete(b, d, tasks)
			}
		})
	}
	callers.Wait()
}

// write is a chunk of an artifact.
func write(t *engine.Task) { t.Version++; t.WriteSeq++ }

func writeChunk(c *engine.Changes, t *engine.Task) {
	c.Chunks = append(c.Chunks, engine.Chunk{
		ArtifactKey: engine.ArtifactKey{TaskID: t.ID, ArtifactID: "a"}, Version: t.Version, Position: t.Version, Total: 500, Data: make([]byte, 500),
	})
}

func reportBloat(b *testing.B, d *database) {
	b.Helper()
	rows, err := d.pool(b).Query(b.Context(), `
		SELECT format('%-18s %9s table %9s indexes %7s live %8s dead %3s %% HOT %2s vacuums', relname,
			pg_size_pretty(pg_table_size(relid)), pg_size_pretty(pg_indexes_size(relid)), n_live_tup, n_dead_tup,
			coalesce(100 * n_tup_hot_upd / nullif(n_tup_upd, 0), 0), autovacuum_count)
		FROM pg_stat_user_tables
		WHERE n_tup_ins > 0
		  AND relname NOT LIKE 'schema\_%'
		ORDER BY relname`)
	require.NoError(b, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(b, err)
	for _, line := range lines {
		fmt.Fprintln(b.Output(), line)
	}
}
