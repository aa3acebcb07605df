package check_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/errandhq/errand/services/e2e/internal/chaos/agents"
	"github.com/errandhq/errand/services/e2e/internal/chaos/check"
	"github.com/errandhq/errand/services/e2e/internal/chaos/journal"
	"github.com/errandhq/errand/services/e2e/internal/chaos/load"
	"github.com/errandhq/errand/services/e2e/internal/harness"
)

// recording is all that a healthy run left: what a case changes is a copy.
type recording struct {
	messages []*journal.Message
	cancels  []*journal.Cancel
	reads    []*journal.Read
	streams  []*journal.Stream
	runs     []journal.Run
	tasks    []*stored
}

// stored is a task in the store.
type stored struct {
	agent string
	task  *a2apb.Task
	log   []*eventv1.Event
}

// runs remembers each run as it ended.
type runs struct {
	mu  sync.Mutex
	all map[string]journal.Run
}

func (r *runs) Write(run journal.Run) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[run.ID] = run
	return nil
}

// sorted may come before the end of runs that lost their lease.
func (r *runs) sorted() []journal.Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []journal.Run
	for _, run := range r.all {
		all = append(all, run)
	}
	slices.SortFunc(all, func(a, b journal.Run) int { return a.Begun.Compare(b.Begun) })
	return all
}

// record runs a load of so many messages against a cluster to which nothing is
// done.
func record(t *testing.T, messages int) (*journal.Journal, []journal.Run, taskstorev1.TaskStoreServiceClient) {
	t.Helper()
	written := &runs{all: map[string]journal.Run{}}
	c := harness.Start(t, harness.Options{AgentsFile: agents.File(), Agents: agents.New("executor-0", 1, written)})
	store := harness.TaskStore(t, c.Backend(t).TaskStoreAddr)
	j := new(journal.Journal)
	var loading sync.WaitGroup
	defer loading.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	loading.Go(func() {
		load.Run(ctx, load.Config{
			Client: c.Client, Agents: []string{agents.Worker, agents.Hybrid}, Hybrid: agents.Hybrid,
			Seed: 1, Senders: 50, Rate: 50, Patience: time.Minute, Journal: j, Logger: slog.New(slog.DiscardHandler),
		})
	})
	require.Eventually(t, func() bool { return len(j.Messages()) >= messages }, 3*time.Minute, 100*time.Millisecond)
	cancel()
	loading.Wait()
	return j, written.sorted(), store
}

func config(j *journal.Journal, written []journal.Run, store check.Store) check.Config {
	return check.Config{
		Store: store, Tenant: "default", Subject: "anonymous", Agents: []string{agents.Worker, agents.Hybrid},
		Journal: j, Runs: written, Lease: 3 * time.Second, MaxAttempts: agents.MaxAttempts, Wait: 30 * time.Second,
		Settle: 10 * time.Second, Logger: slog.New(slog.DiscardHandler),
	}
}

func report(t *testing.T, r *check.Report) string {
	t.Helper()
	var b writer
	require.NoError(t, r.Write(&b))
	return string(b)
}

type writer []byte

func (w *writer) Write(p []byte) (int, error) {
	*w = append(*w, p...)
	return len(p), nil
}

// remember reads everything back.
func remember(t *testing.T, j *journal.Journal, written []journal.Run, store check.Store) *recording {
	t.Helper()
	r := &recording{messages: j.Messages(), cancels: j.Cancels(), reads: j.Reads(), streams: j.Streams(), runs: written}
	for _, agent := range []string{agents.Worker, agents.Hybrid} {
		scope := &taskstorev1.Scope{Tenant: "default", Subject: "anonymous", Agent: agent}
		in := &taskstorev1.ListTasksRequest{Scope: scope, PageSize: 100, IncludeArtifacts: true, HistoryLength: new(int32(100))}
		for more := true; more; more = in.GetPageToken() != "" {
			page, err := store.ListTasks(t.Context(), in)
			require.NoError(t, err)
			for _, task := range page.GetTasks() {
				log, err := store.ListEvents(t.Context(), &taskstorev1.ListEventsRequest{Scope: scope, TaskId: task.GetId()})
				require.NoError(t, err)
				require.Len(t, log.GetEvents(), int(log.GetVersion()))
				r.tasks = append(r.tasks, &stored{agent, task, log.GetEvents()})
			}
			in.PageToken = page.GetNextPageToken()
		}
	}
	return r
}

// journal is the recording as the load would have handed it over.
func (r *recording) journal() *journal.Journal {
	j := new(journal.Journal)
	for _, m := range r.messages {
		j.AddMessage(m)
	}
	for _, c := range r.cancels {
		j.AddCancel(c)
	}
	for _, read := range r.reads {
		j.AddRead(read)
	}
	for _, s := range r.streams {
		j.AddStream(s)
	}
	return j
}

func (r *recording) ListTasks(_ context.Context, in *taskstorev1.ListTasksRequest, _ ...grpc.CallOption) (*taskstorev1.ListTasksResponse, error) {
	out := new(taskstorev1.ListTasksResponse)
	for _, s := range r.tasks {
		if s.agent == in.GetScope().GetAgent() && (in.GetState() == 0 || in.GetState() == s.task.GetStatus().GetState()) {
			out.Tasks = append(out.Tasks, s.task)
		}
	}
	return out, nil
}

func (r *recording) ListEvents(_ context.Context, in *taskstorev1.ListEventsRequest, _ ...grpc.CallOption) (*taskstorev1.ListEventsResponse, error) {
	for _, s := range r.tasks {
		if s.task.GetId() == in.GetTaskId() {
			if n := len(s.log); n > 0 && in.GetAfter() < s.log[n-1].GetVersion() {
				return &taskstorev1.ListEventsResponse{Events: s.log[in.GetAfter():], Version: s.log[n-1].GetVersion()}, nil
			}
			return &taskstorev1.ListEventsResponse{Version: in.GetAfter()}, nil
		}
	}
	return nil, fmt.Errorf("no task %s", in.GetTaskId())
}
