package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/pkg/testkit"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/rpcserver"
	"github.com/errandhq/errand/services/taskstore/internal/store"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
)

// tasksVariable names the numbers of tasks that reads are measured at, as in
// "20000,1000000"; loading a million takes minutes.
const tasksVariable = "ERRAND_BENCH_TASKS"

// Benchmark measures what must not grow: the cost of a chunk with its artifact,
// and that of reads, over gRPC, with the number of tasks. The figures of a database are had by
//
//	ERRAND_BENCH_TASKS=20000,1000000 go test -run '^$' -bench Store -timeout 60m ./taskstore/internal/sqlite
//
// in the folder services, and the same with postgres.
func Benchmark(b *testing.B, open func(b *testing.B) Database) {
	b.Helper()
	for _, chunks := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("append/chunk=%d", chunks), func(b *testing.B) { benchmarkAppend(b, open(b), chunks) })
	}
	for _, callers := range []int{1, 32} {
		b.Run(fmt.Sprintf("turn/callers=%d", callers), func(b *testing.B) { benchmarkTurns(b, open(b), callers) })
	}
	sizes := os.Getenv(tasksVariable)
	if sizes == "" {
		sizes = "20000"
	}
	for size := range strings.SplitSeq(sizes, ",") {
		n, err := strconv.Atoi(size)
		require.NoError(b, err, tasksVariable)
		b.Run("tasks="+size, func(b *testing.B) { benchmarkReads(b, open(b), n) })
	}
}

// bench is a store under measurement, and the way on which others reach it.
type bench struct {
	*testing.B
	store  *store.Store
	client taskstorev1.TaskStoreServiceClient
	scope  *taskstorev1.Scope
}

func newBench(b *testing.B, db Database) *bench {
	b.Helper()
	s := store.New(db.Engine, store.Options{
		Publisher: &recorder{name: "bench"},
		Agents:    &config.Agents{Limits: config.DefaultLimits(), Agents: []config.Agent{{Name: "a", MaxAttempts: 3}}},
		CursorKey: task.CursorKey("0123456789abcdef"), Now: time.Now, NewID: task.NewID,
		ContextTTL: time.Hour, Parallel: db.Parallel,
	})
	b.Cleanup(s.Close)
	conn := testkit.GRPC(b, func(r grpc.ServiceRegistrar) { taskstorev1.RegisterTaskStoreServiceServer(r, rpcserver.New(s)) })
	return &bench{B: b, store: s, client: taskstorev1.NewTaskStoreServiceClient(conn), scope: &taskstorev1.Scope{Tenant: "t", Agent: "a", Subject: "owner-0"}}
}

// running starts and claims a task.
func (b *bench) running(ctx context.Context) *taskstorev1.LeaseRef {
	m := &a2apb.Message{MessageId: task.NewID(), Role: a2apb.Role_ROLE_USER, Parts: []*a2apb.Part{part("go")}}
	accepted := b.store.AcceptMessages(ctx, []*taskstorev1.AcceptMessageRequest{{
		Scope: b.scope, Message: m, NewTaskId: task.NewID(), NewContextId: task.NewID(), Dedupe: true, Fingerprint: task.Fingerprint(m),
	}})[0]
	require.NoError(b, accepted.Err)
	claimed, err := b.store.ClaimTasks(ctx, &taskstorev1.ClaimTasksRequest{
		Agent: "a", Holder: holder, Lease: durationpb.New(lease),
		Tasks: []*taskstorev1.TaskRef{{Tenant: "t", TaskId: accepted.Value.GetTask().GetId()}},
	})
	require.NoError(b, err)
	c := claimed.GetResults()[0].GetClaim()
	require.NotNil(b, c)
	return leaseOf(c)
}

func (b *bench) write(ctx context.Context, l *taskstorev1.LeaseRef, events ...*taskstorev1.TaskEvent) {
	answer, err := b.store.WriteEvents(ctx, &taskstorev1.WriteEventsRequest{
		Holder: holder, Writes: []*taskstorev1.TaskWrite{{Lease: l, Events: events, HandledVersion: 1}},
	})
	require.NoError(b, err)
	require.Zero(b, answer.GetResults()[0].GetRefusal())
}

// filled is a task with an artifact of so many chunks.
func (b *bench) filled(ctx context.Context, chunks int) *taskstorev1.LeaseRef {
	l := b.running(ctx)
	events := []*taskstorev1.TaskEvent{chunk("a", "text of a chunk", false)}
	for i := 1; i < chunks; i++ {
		events = append(events, chunk("a", "text of a chunk", true))
		if len(events) == 500 {
			b.write(ctx, l, events...)
			events = nil
		}
	}
	if len(events) > 0 {
		b.write(ctx, l, events...)
	}
	return l
}

func benchmarkAppend(b *testing.B, db Database, chunks int) {
	s := newBench(b, db)
	ctx := context.Background()
	l := s.filled(ctx, chunks)
	one := chunk("a", "text of a chunk", true)
	for i := 0; b.Loop(); i++ {
		// The artifact stays within a tenth of its length.
		if i > 0 && i%max(10, chunks/10) == 0 {
			b.StopTimer()
			l = s.filled(ctx, chunks)
			b.StartTimer()
		}
		s.write(ctx, l, one)
	}
}

// benchmarkTurns takes tasks through their whole life: accepted, claimed, completed.
func benchmarkTurns(b *testing.B, db Database, callers int) {
	s := newBench(b, db)
	ctx := context.Background()
	jobs := make(chan struct{})
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for range jobs {
				s.write(ctx, s.running(ctx), status(task.Completed, ""))
			}
		})
	}
	for b.Loop() {
		jobs <- struct{}{}
	}
	close(jobs)
	group.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
}

func benchmarkReads(b *testing.B, db Database, tasks int) {
	s := newBench(b, db)
	ctx := context.Background()
	ids, err := Load(ctx, db.Engine, tasks)
	require.NoError(b, err)
	if db.Settle != nil {
		require.NoError(b, db.Settle(ctx))
	}
	b.Run("get", func(b *testing.B) {
		for b.Loop() {
			_, err := s.client.GetTask(ctx, &taskstorev1.GetTaskRequest{Scope: s.scope, TaskId: ids[rand.IntN(len(ids))]})
			require.NoError(b, err)
		}
	})
	owned := &taskstorev1.Scope{Tenant: "t", Agent: "a", Subject: "owner-1", OwnedOnly: true}
	for name, r := range map[string]*taskstorev1.ListTasksRequest{
		"all":       {Scope: s.scope},
		"owned":     {Scope: owned},
		"completed": {Scope: s.scope, State: task.Completed},
		"parked":    {Scope: owned, State: task.InputRequired},
		"context":   {Scope: s.scope, ContextId: "context-1"},
	} {
		r.PageSize = 50
		b.Run("list/"+name, func(b *testing.B) {
			for b.Loop() {
				answer, err := s.client.ListTasks(ctx, r)
				require.NoError(b, err)
				require.NotEmpty(b, answer.GetTasks())
			}
		})
	}
}
