package publish

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/events"
	"github.com/errandhq/errand/pkg/queue"
	"github.com/errandhq/errand/pkg/testkit"
	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/errandhq/errand/services/taskstore/internal/postgres"
	"github.com/errandhq/errand/services/taskstore/internal/store"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

const (
	tenant   = "acme"
	agent    = "ledger"
	patience = 30 * time.Second
	soon     = 10 * time.Millisecond
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is a database and a NATS server of the test's own.
type cluster struct {
	t      *testing.T
	server *testkit.NATSServer
	nc     *nats.Conn
	events *events.Publisher
	work   *queue.Publisher
	engine *postgres.Engine
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	url := testkit.PostgresFrom(t, "taskstore", func(url string) error { return postgres.Migrate(t.Context(), url) })
	e, err := postgres.Open(t.Context(), url, postgres.Options{})
	require.NoError(t, err)
	t.Cleanup(e.Close)
	c := &cluster{t: t, server: testkit.NewNATSServer(t), engine: e}
	c.nc = c.server.Connect()
	require.NoError(t, events.EnsureStream(t.Context(), c.nc, events.StreamConfig{}))
	c.events, err = events.NewPublisher(c.nc, events.PublisherConfig{})
	require.NoError(t, err)
	c.work, err = queue.NewPublisher(c.nc, queue.PublisherConfig{})
	require.NoError(t, err)
	return c
}

func (c *cluster) newPublisher(name string) *Publisher {
	return New(Options{
		Name: name, Outbox: c.engine, NATS: c.nc, Events: c.events, Work: c.work, Now: time.Now, Logger: testkit.Logger(c.t),
	})
}

func (c *cluster) start(p *Publisher) *Publisher {
	c.t.Helper()
	require.NoError(c.t, p.Start(c.t.Context()))
	c.t.Cleanup(func() { c.stop(p) })
	return p
}

func (c *cluster) stop(p *Publisher) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(c.t, p.Stop(ctx))
}

func (c *cluster) disconnect() {
	c.t.Helper()
	c.server.Stop()
	require.Eventually(c.t, func() bool { return !c.nc.IsConnected() }, patience, soon)
}

func (c *cluster) reconnect() {
	c.t.Helper()
	c.server.Start()
	require.Eventually(c.t, c.nc.IsConnected, patience, soon)
}

// task is a task of which only the event log matters.
type task struct {
	id      string
	version int64
}

func newTask() *task { return &task{id: uuid.Must(uuid.NewV7()).String()} }

// next makes the task's next event.
func (t *task) next() *eventv1.Event {
	t.version++
	return &eventv1.Event{
		Tenant: tenant, Agent: agent, TaskId: t.id, Version: t.version, Time: timestamppb.Now(),
		Kind: &eventv1.Event_StatusUpdate{StatusUpdate: &a2apb.TaskStatusUpdateEvent{TaskId: t.id}},
	}
}

// insert writes the rows of events, as the store does.
func (c *cluster) insert(r store.Reservation, list ...*eventv1.Event) {
	c.t.Helper()
	changes := &engine.Changes{}
	for i, e := range list {
		data, err := proto.Marshal(e)
		require.NoError(c.t, err)
		changes.Events = append(changes.Events, engine.Event{
			Tenant: e.GetTenant(), TaskID: e.GetTaskId(), Version: e.GetVersion(), CreatedAt: e.GetTime().AsTime(),
			Publisher: r.Publisher(), Seq: r.First() + int64(i), Data: data,
		})
	}
	err := c.engine.Update(c.t.Context(), engine.Selection{},
		func(*engine.Loaded) (*engine.Changes, error) { return changes, nil })
	require.NoError(c.t, err)
}

// commit is a transaction that makes the next events of a task.
func (c *cluster) commit(p *Publisher, t *task, n int) {
	c.t.Helper()
	r := p.Reserve(n)
	var list []*eventv1.Event
	for range n {
		list = append(list, t.next())
	}
	c.insert(r, list...)
	r.Commit(c.t.Context(), []store.Notice{{Events: list}})
}

// reader collects the versions of each task as they come. Like any reader it drops
// repeats, which the stream doesn't store but passes on.
type reader struct {
	mu       sync.Mutex
	versions map[string][]int64
}

func (c *cluster) read(tasks ...*task) *reader {
	c.t.Helper()
	r := &reader{versions: map[string][]int64{}}
	for _, t := range tasks {
		sub, err := events.Subscribe(c.t.Context(), c.nc, tenant, t.id, func(_ context.Context, e *eventv1.Event) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if !slices.Contains(r.versions[t.id], e.GetVersion()) {
				r.versions[t.id] = append(r.versions[t.id], e.GetVersion())
			}
		})
		require.NoError(c.t, err)
		c.t.Cleanup(sub.Close)
	}
	return r
}

func (r *reader) of(t *task) []int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.versions[t.id])
}

// requireStored waits until the stream holds exactly the events of the tasks, each
// once and those of a task in order.
func (c *cluster) requireStored(tasks ...*task) {
	c.t.Helper()
	want, got := map[string][]int64{}, map[string][]int64{}
	for _, t := range tasks {
		for v := range t.version {
			want[t.id] = append(want[t.id], v+1)
		}
	}
	ok := func() bool {
		got = c.stored()
		return fmt.Sprint(got) == fmt.Sprint(want)
	}
	for deadline := time.Now().Add(patience); !ok() && time.Now().Before(deadline); {
		<-time.After(soon)
	}
	require.Equal(c.t, want, got)
}

// stored is the versions in the stream, by task.
func (c *cluster) stored() map[string][]int64 {
	c.t.Helper()
	js, err := jetstream.New(c.nc)
	require.NoError(c.t, err)
	stream, err := js.Stream(c.t.Context(), events.Stream)
	require.NoError(c.t, err)
	stored := map[string][]int64{}
	state := stream.CachedInfo().State
	for seq := max(state.FirstSeq, 1); seq <= state.LastSeq; seq++ {
		msg, err := stream.GetMsg(c.t.Context(), seq)
		require.NoError(c.t, err)
		e := &eventv1.Event{}
		require.NoError(c.t, proto.Unmarshal(msg.Data, e))
		stored[e.GetTaskId()] = append(stored[e.GetTaskId()], e.GetVersion())
	}
	return stored
}

// recorded is the publisher's mark in the database, -1 without a row.
func (c *cluster) recorded(name string) int64 {
	c.t.Helper()
	rows, err := c.engine.StalePublishers(c.t.Context(), time.Now().Add(time.Hour))
	require.NoError(c.t, err)
	for _, row := range rows {
		if row.ID == name {
			return row.Through
		}
	}
	return -1
}

func (c *cluster) requireRecorded(name string, mark int64) {
	c.t.Helper()
	require.Eventually(c.t, func() bool { return c.recorded(name) == mark }, patience, soon, "mark %d", mark)
}
