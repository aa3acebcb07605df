package testkit_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/errandhq/errand/pkg/natsconn"
	"github.com/errandhq/errand/pkg/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func query(t *testing.T, url, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	var result string
	require.NoError(t, conn.QueryRow(t.Context(), sql).Scan(&result))
	return result
}

func execute(url, sql string) error {
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	_, err = conn.Exec(context.Background(), sql)
	return err
}

func TestPostgresGivesEachTestADatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	first, second := testkit.Postgres(t), testkit.Postgres(t)
	require.NoError(t, execute(first, "CREATE TABLE only_here (id int)"))
	require.Equal(t, "0", query(t, second, "SELECT count(*)::text FROM pg_tables WHERE tablename = 'only_here'"))
}

func TestPostgresDropsTheDatabaseWithItsTest(t *testing.T) { //nolint:tparallel // the inner test has to end first
	t.Parallel()
	outer := testkit.Postgres(t)
	var name string
	t.Run("inner", func(t *testing.T) {
		name = query(t, testkit.Postgres(t), "SELECT current_database()")
	})
	require.Equal(t, "0", query(t, outer, "SELECT count(*)::text FROM pg_database WHERE datname = '"+name+"'"))
}

func TestPostgresFromMigratesOnceAndCopies(t *testing.T) {
	t.Parallel()
	runs := 0
	migrate := func(url string) error {
		runs++
		return execute(url, "CREATE TABLE migrated AS SELECT 'yes' AS answer")
	}
	name := rand.Text() // the template of an earlier run of this test is still there
	first := testkit.PostgresFrom(t, name, migrate)
	second := testkit.PostgresFrom(t, name, migrate)
	require.NoError(t, execute(first, "UPDATE migrated SET answer = 'changed'"))
	require.Equal(t, "yes", query(t, second, "SELECT answer FROM migrated"))
	require.Equal(t, 1, runs)
}

func TestNATSServerComesBackForItsConnections(t *testing.T) {
	t.Parallel()
	srv := testkit.NewNATSServer(t)
	nc := srv.Connect()
	require.NoError(t, natsconn.Ready(nc))
	srv.Stop()
	require.Eventually(t, func() bool { return natsconn.Ready(nc) != nil }, 10*time.Second, time.Millisecond)
	srv.Start()
	require.Eventually(t, func() bool { return natsconn.Ready(nc) == nil }, 10*time.Second, time.Millisecond)
}

func TestGRPCServesWithoutAPort(t *testing.T) {
	t.Parallel()
	conn := testkit.GRPC(t, func(grpc.ServiceRegistrar) {})
	resp, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{})
	require.NoError(t, err)
	require.Equal(t, healthv1.HealthCheckResponse_SERVING, resp.GetStatus())
}

func TestLoggerOutlivesItsTestQuietly(t *testing.T) { //nolint:tparallel // the inner test has to end first
	t.Parallel()
	var logger *slog.Logger
	t.Run("inner", func(t *testing.T) { logger = testkit.Logger(t) })
	logger.Info("too late")
}

// The leak check of this package finds the streams otherwise.
func TestAServerDoesWhatItWasAskedForBeforeItStops(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	for i := range 20 {
		name := fmt.Sprint("S", i)
		request := fmt.Sprintf(`{"name": %q, "subjects": [%q], "storage": "file"}`, name, name)
		require.NoError(t, nc.Publish("$JS.API.STREAM.CREATE."+name, []byte(request)))
	}
}
