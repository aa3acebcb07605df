package reaper

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/events"
	"github.com/errandhq/errand/pkg/queue"
	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/pkg/testkit"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/errandhq/errand/services/taskstore/internal/postgres"
	"github.com/errandhq/errand/services/taskstore/internal/publish"
	"github.com/errandhq/errand/services/taskstore/internal/store"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	agent       = "ledger"
	tenant      = "acme"
	holder      = "executor-1"
	maxAttempts = 2
	lease       = 10 * time.Second
	patience    = 30 * time.Second
	soon        = 5 * time.Millisecond
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is real time that a test can move ahead.
type clock struct {
	ahead atomic.Int64
	// When it last jumped; nil for never.
	jump atomic.Pointer[time.Time]
}

func (c *clock) jumped() time.Time {
	if at := c.jump.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

func (c *clock) now() time.Time           { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) advance(by time.Duration) { c.ahead.Add(int64(by)) }

// cluster is a task store of the test's own with a reaper that doesn't run.
type cluster struct {
	*testing.T
	*Reaper
	clock  *clock
	url    string
	server *testkit.NATSServer
	nc     *nats.Conn
	engine *postgres.Engine
	store  *store.Store
	stream jetstream.Stream
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	url := testkit.PostgresFrom(t, "taskstore", func(url string) error { return postgres.Migrate(t.Context(), url) })
	e, err := postgres.Open(t.Context(), url, postgres.Options{})
	require.NoError(t, err)
	t.Cleanup(e.Close)
	c := &cluster{T: t, clock: &clock{}, url: url, server: testkit.NewNATSServer(t), engine: e}
	c.nc = c.server.Connect()
	agents := &config.Agents{Limits: config.DefaultLimits(), Agents: []config.Agent{{
		Name: agent, MaxAttempts: maxAttempts, Lease: config.Duration(lease),
		MaxRuntime: config.Duration(time.Hour), InputTimeout: config.Duration(24 * time.Hour),
	}}}
	c.store = store.New(e, store.Options{
		Publisher: c.startPublisher(), Agents: agents, CursorKey: task.CursorKey("0123456789abcdef"), Now: c.clock.now,
		NewID: task.NewID, ContextTTL: time.Hour, Parallel: 4,
	})
	t.Cleanup(c.store.Close)
	c.Reaper = c.newReaper("reaper-1", agents)
	return c
}

func (c *cluster) startPublisher() *publish.Publisher {
	c.Helper()
	require.NoError(c, queue.EnsureStream(c.Context(), c.nc, queue.StreamConfig{}))
	work, err := queue.NewPublisher(c.nc, queue.PublisherConfig{})
	require.NoError(c, err)
	published, err := events.NewPublisher(c.nc, events.PublisherConfig{})
	require.NoError(c, err)
	p := publish.New(publish.Options{
		Name: "store-1", Outbox: c.engine, NATS: c.nc, Events: published, Work: work, Now: c.clock.now, Logger: testkit.Logger(c),
	})
	require.NoError(c, p.Start(c.Context()))
	c.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = p.Stop(ctx) // NATS may be away
	})
	js, err := jetstream.New(c.nc)
	require.NoError(c, err)
	c.stream, err = js.Stream(c.Context(), queue.Stream)
	require.NoError(c, err)
	return p
}

func (c *cluster) newReaper(name string, agents *config.Agents) *Reaper {
	c.Helper()
	r, err := New(Options{
		Holder: name, Engine: c.engine, Store: c.store, Agents: agents, NATS: c.nc, Logger: testkit.Logger(c),
		Now: c.clock.now, Jumped: c.clock.jumped,
	})
	require.NoError(c, err)
	return r
}

// accept starts n tasks, one after the other, and waits until their work messages
// are in the stream.
func (c *cluster) accept(n int) []string {
	c.Helper()
	before := c.messages()
	ids := make([]string, n)
	for i := range ids {
		m := &a2apb.Message{
			MessageId: task.NewID(), Role: a2apb.Role_ROLE_USER,
			Parts: []*a2apb.Part{{Content: &a2apb.Part_Text{Text: "go"}}},
		}
		answer := c.store.AcceptMessages(c.Context(), []*taskstorev1.AcceptMessageRequest{{
			Scope: &taskstorev1.Scope{Tenant: tenant, Agent: agent, Subject: "alice"}, Message: m,
			NewTaskId: task.NewID(), NewContextId: task.NewID(), Dedupe: true, Fingerprint: task.Fingerprint(m),
		}})[0]
		require.NoError(c, answer.Err)
		ids[i] = answer.Value.GetTask().GetId()
	}
	c.requireMessages(before + n)
	return ids
}

func (c *cluster) claim(id string) *taskstorev1.ClaimResult {
	c.Helper()
	answer, err := c.store.ClaimTasks(c.Context(), &taskstorev1.ClaimTasksRequest{
		Agent: agent, Holder: holder, Lease: durationpb.New(lease), Tasks: []*taskstorev1.TaskRef{{Tenant: tenant, TaskId: id}},
	})
	require.NoError(c, err)
	return answer.GetResults()[0]
}

func (c *cluster) task(id string) *engine.Task {
	c.Helper()
	found, err := c.engine.ReadTasks(c.Context(), engine.Scope{Tenant: tenant}, []string{id}, engine.Detail{})
	require.NoError(c, err)
	require.Len(c, found, 1)
	return found[0].Task
}

// enqueueCounts tells how often executors were told of each task.
func (c *cluster) enqueueCounts(ids []string) map[int64]int {
	c.Helper()
	found, err := c.engine.ReadTasks(c.Context(), engine.Scope{Tenant: tenant}, ids, engine.Detail{})
	require.NoError(c, err)
	counts := map[int64]int{}
	for _, s := range found {
		counts[s.Task.EnqueueCount]++
	}
	return counts
}

// messages is how many work messages the stream holds.
func (c *cluster) messages() int {
	c.Helper()
	info, err := c.stream.Info(c.Context())
	require.NoError(c, err)
	return int(info.State.Msgs)
}

func (c *cluster) requireMessages(n int) {
	c.Helper()
	require.Eventually(c, func() bool { return c.messages() == n }, patience, soon, "%d messages", n)
}

// do does a duty until it is done.
func (c *cluster) do(duty func(context.Context) (bool, error)) {
	c.Helper()
	for full := true; full; {
		var err error
		full, err = duty(c.Context())
		require.NoError(c, err)
	}
}

func (c *cluster) deadLetters() []string {
	c.Helper()
	letters, err := c.engine.ListDeadLetters(c.Context(), engine.DeadLetterQuery{Limit: 100})
	require.NoError(c, err)
	var list []string
	for _, l := range letters {
		list = append(list, fmt.Sprintf("%s %s after %d", l.TaskID, l.Reason, l.Attempts))
	}
	return list
}

func (c *cluster) renew(claim *taskstorev1.Claim) {
	c.Helper()
	answer, err := c.store.RenewLeases(c.Context(), &taskstorev1.RenewLeasesRequest{
		Holder: holder, Lease: durationpb.New(lease),
		Leases: []*taskstorev1.LeaseRef{{TaskId: claim.GetTask().GetId(), LeaseEpoch: claim.GetLeaseEpoch()}},
	})
	require.NoError(c, err)
	require.Zero(c, answer.GetResults()[0].GetRefusal())
}
