package taskstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/testkit"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"
)

// ahead is how far the clock of a test's database is from the stores'.
const ahead = 10 * time.Minute

// shiftedURL is a database whose clock is ahead of the machine's.
func shiftedURL(t *testing.T) string {
	t.Helper()
	url := testkit.Postgres(t)
	require.NoError(t, taskstore.Migrate(t.Context(), url))
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	for _, sql := range []string{
		`CREATE SCHEMA shifted`,
		`CREATE FUNCTION shifted.clock_timestamp() RETURNS timestamptz LANGUAGE sql
			AS $$ SELECT pg_catalog.clock_timestamp() + interval '10 minutes' $$`,
		`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = shifted, public, pg_catalog', current_database()); END $$`,
	} {
		_, err := conn.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	return url
}

// To its database a store whose own clock is ten minutes off is like any other: the
// leases that it gives and takes away are dated by the database's clock.
func TestAStoreGoesByTheClockOfItsDatabase(t *testing.T) {
	t.Parallel()
	cfg := newConfig(t, shiftedURL(t))
	cfg.Agents.Agents[0].Lease = config.Duration(2 * time.Second)
	service, client := serve(t, cfg)
	_, other := serve(t, cfg)
	require.Eventually(t, func() bool { return service.Ready() == nil }, patience, time.Millisecond)
	created := accept(t, client)
	require.WithinDuration(t, time.Now().Add(ahead), created.GetStatus().GetTimestamp().AsTime(), 10*time.Second)

	claimed, err := client.ClaimTasks(t.Context(), &taskstorev1.ClaimTasksRequest{
		Agent: "echo", Holder: "executor", Tasks: []*taskstorev1.TaskRef{{Tenant: "default", TaskId: created.GetId()}},
	})
	require.NoError(t, err)
	claim := claimed.GetResults()[0].GetClaim()
	renew := func(at taskstorev1.TaskStoreServiceClient) taskstorev1.Refusal {
		answer, err := at.RenewLeases(t.Context(), &taskstorev1.RenewLeasesRequest{
			Holder: "executor", Lease: durationpb.New(2 * time.Second),
			Leases: []*taskstorev1.LeaseRef{{TaskId: created.GetId(), LeaseEpoch: claim.GetLeaseEpoch()}},
		})
		require.NoError(t, err)
		return answer.GetResults()[0].GetRefusal()
	}
	for i := range 10 { // longer than the lease, by the one store and the other
		require.Zero(t, renew([]taskstorev1.TaskStoreServiceClient{client, other}[i%2]))
		<-time.After(400 * time.Millisecond)
	}
	require.Eventually(t, func() bool { // without a heartbeat it lapses, and not ten minutes later
		answer, err := client.ClaimTasks(t.Context(), &taskstorev1.ClaimTasksRequest{
			Agent: "echo", Holder: "other", Tasks: []*taskstorev1.TaskRef{{Tenant: "default", TaskId: created.GetId()}},
		})
		return err == nil && answer.GetResults()[0].GetClaim().GetAttempt() == 2
	}, patience, 50*time.Millisecond)
}
