package run

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/errandhq/errand/pkg/config"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/e2e/internal/chaos/agents"
	"github.com/errandhq/errand/services/e2e/internal/chaos/check"
	"github.com/errandhq/errand/services/e2e/internal/chaos/journal"
)

const (
	// settleWithin leaves time for several leases and turns of the reaper.
	settleWithin = 90 * time.Second
	// maxReceive lets answers hold a page of whole tasks.
	maxReceive = 64 << 20
)

// verdict checks what came out, says so, and keeps the journal.
func (r *run) verdict(ctx context.Context) (bool, error) {
	fmt.Fprintln(r.Out, "checking")
	runs, err := journal.ReadRuns(r.runs())
	if err != nil {
		return false, err
	}
	file, err := config.Parse(agents.File())
	if err != nil {
		return false, err
	}
	store, err := grpc.NewClient(r.cluster.TaskStores()[0],
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxReceive)))
	if err != nil {
		return false, fmt.Errorf("connect to a task store: %w", err)
	}
	defer func() { _ = store.Close() }()
	report := check.Check(ctx, check.Config{
		Store: taskstorev1.NewTaskStoreServiceClient(store), Tenant: "default", Subject: "anonymous",
		Agents: []string{agents.Worker, agents.Hybrid}, Journal: r.journal, Runs: runs, Interruptions: r.nemesis.Interruptions(),
		Lease: agents.Lease, MaxAttempts: agents.MaxAttempts, Wait: file.Limits.Wait.Value(),
		Settle: settleWithin, Stall: r.Stall, Backlog: r.backlog, Exits: slices.Concat(r.nemesis.Faults(), r.complaints()), Logger: r.logger,
	})
	if err := r.keep(); err != nil {
		return false, err
	}
	return len(report.Found()) == 0, report.Write(r.Out)
}

const unpublished = `
SELECT count(*)
FROM publishers AS p
JOIN events AS e ON e.publisher = p.id AND e.publish_seq > p.published_through`

// backlog is how many events are committed and not published.
func (r *run) backlog(ctx context.Context) (int64, error) {
	conn, err := pgx.Connect(ctx, r.cluster.DatabaseURL())
	if err != nil {
		return 0, fmt.Errorf("connect to the database: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var n int64
	if err := conn.QueryRow(ctx, unpublished).Scan(&n); err != nil {
		return 0, fmt.Errorf("count unpublished events: %w", err)
	}
	return n, nil
}
