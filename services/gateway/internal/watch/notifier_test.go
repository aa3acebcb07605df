package watch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	notifierv1 "github.com/errandhq/errand/proto/gen/errand/notifier/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"

	"github.com/errandhq/errand/pkg/events"
	"github.com/errandhq/errand/pkg/telemetry"
	"github.com/errandhq/errand/pkg/testkit"
	"github.com/errandhq/errand/services/gateway/internal/watch"
	"github.com/errandhq/errand/services/notifier"
)

// store is what the notifier and a subscriber read of a task store, in memory.
type store struct {
	taskstorev1.UnimplementedTaskStoreServiceServer

	mu   sync.Mutex
	logs map[string][]*eventv1.Event
}

func (s *store) commit(taskID string, state a2apb.TaskState) *eventv1.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := update(int64(len(s.logs[taskID]))+1, state)
	e.TaskId = taskID
	s.logs[taskID] = append(s.logs[taskID], e)
	return e
}

func (s *store) version(taskID string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.logs[taskID]))
}

func (s *store) ListEvents(_ context.Context, r *taskstorev1.ListEventsRequest) (*taskstorev1.ListEventsResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.logs[r.GetTaskId()]
	return &taskstorev1.ListEventsResponse{Events: log[min(r.GetAfter(), int64(len(log))):], Version: int64(len(log))}, nil
}

func (s *store) GetVersions(_ context.Context, r *taskstorev1.GetVersionsRequest) (*taskstorev1.GetVersionsResponse, error) {
	response := &taskstorev1.GetVersionsResponse{}
	for _, ref := range r.GetTasks() {
		response.Tasks = append(response.Tasks, &taskstorev1.TaskVersion{TaskId: ref.GetTaskId(), Version: s.version(ref.GetTaskId())})
	}
	return response, nil
}

// cluster is a store, NATS, a notifier that can be replaced, and a gateway's
// watcher.
type cluster struct {
	*testing.T

	nats      *testkit.NATSServer
	store     *store
	storeConn grpc.ClientConnInterface
	proxy     *proxy
	watcher   *watch.Watcher
	publisher *events.Publisher
	// Stops the present notifier.
	stop func()
}

// proxy is a notifier's connection that can be switched to another one.
type proxy struct {
	mu      sync.Mutex
	current notifierv1.NotifierServiceClient
}

func (p *proxy) Watch(ctx context.Context, opts ...grpc.CallOption) (grpc.BidiStreamingClient[notifierv1.WatchRequest, notifierv1.WatchResponse], error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current.Watch(ctx, opts...)
}

func (p *proxy) use(conn grpc.ClientConnInterface) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current = notifierv1.NewNotifierServiceClient(conn)
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{T: t, nats: testkit.NewNATSServer(t), store: &store{logs: map[string][]*eventv1.Event{}}, proxy: &proxy{}}
	c.storeConn = testkit.GRPC(t, func(r grpc.ServiceRegistrar) { taskstorev1.RegisterTaskStoreServiceServer(r, c.store) })
	c.replaceNotifier()
	c.watcher = watch.New(watch.Config{Client: c.proxy, Logger: testkit.Logger(t), Buffer: 16})
	require.NoError(t, c.watcher.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, c.watcher.Stop(context.Background())) })

	nc := c.nats.Connect()
	require.NoError(t, events.EnsureStream(t.Context(), nc, events.StreamConfig{}))
	var err error
	c.publisher, err = events.NewPublisher(nc, events.PublisherConfig{})
	require.NoError(t, err)
	return c
}

// replaceNotifier starts another notifier, has new streams go to it, and stops
// the one before.
func (c *cluster) replaceNotifier() {
	c.Helper()
	s, err := notifier.New(c.Context(), notifier.Config{
		Logger: testkit.Logger(c.T), Telemetry: telemetry.Disabled(), TaskStore: c.storeConn,
		NATS: c.nats.Connect(), Compare: 50 * time.Millisecond,
	})
	require.NoError(c, err)
	require.NoError(c, s.Start(c.Context()))
	c.proxy.use(testkit.GRPC(c.T, s.Register))
	if c.stop != nil {
		c.stop()
	}
	c.stop = func() { require.NoError(c, s.Stop(context.Background())) }
	c.Cleanup(c.stop)
}

// follow reads a task as a stream does: subscribe, snapshot, events above it. It
// fails if a version is missing, repeated or out of order.
func (c *cluster) follow(ctx context.Context, taskID string, last int64) error {
	s, err := c.watcher.Watch(ctx, tenant, taskID, -1)
	if err != nil {
		return err
	}
	defer s.Close()
	seen := c.store.version(taskID)
	if seen < s.Position() {
		return fmt.Errorf("snapshot at %d is older than position %d", seen, s.Position())
	}
	for seen < last {
		item, err := s.Next(ctx)
		switch version := item.Event.GetVersion(); {
		case errors.Is(err, io.EOF):
			return fmt.Errorf("the feed ended at %d", seen)
		case err != nil:
			return err
		case item.Resync:
			seen = c.store.version(taskID)
		case version == seen+1:
			seen = version
		case version > seen+1:
			return fmt.Errorf("%d came after %d", version, seen)
		}
	}
	return nil
}

// Many subscribers join and leave while events are lost, repeated and reordered,
// NATS restarts and notifiers are replaced.
func TestSubscribersMissNothingWhateverBreaks(t *testing.T) {
	t.Parallel()
	const tasks, subscribers, versions = 10, 8, 40
	c := startCluster(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range tasks {
		c.store.commit(fmt.Sprint("t", i), a2apb.TaskState_TASK_STATE_WORKING)
	}
	group, ctx := errgroup.WithContext(ctx)
	for i := range tasks {
		for n := range subscribers {
			group.Go(func() error {
				<-time.After(time.Duration(n*20) * time.Millisecond)
				if err := c.follow(ctx, fmt.Sprint("t", i), versions); err != nil {
					return fmt.Errorf("task %d, subscriber %d: %w", i, n, err)
				}
				return nil
			})
		}
	}
	group.Go(func() error { return c.disturb(ctx, tasks, versions) })
	require.NoError(t, group.Wait())
}

func (c *cluster) disturb(ctx context.Context, tasks, versions int) error {
	rnd := rand.New(rand.NewPCG(5, 6))
	for v := 2; v <= versions; v++ {
		var published []*eventv1.Event
		for i := range tasks {
			state := a2apb.TaskState_TASK_STATE_WORKING
			if v == versions {
				state = a2apb.TaskState_TASK_STATE_COMPLETED
			}
			e := c.store.commit(fmt.Sprint("t", i), state)
			for range rnd.IntN(3) {
				published = append(published, e)
			}
		}
		rnd.Shuffle(len(published), func(i, j int) { published[i], published[j] = published[j], published[i] })
		// Whatever is not published is found in the log.
		_ = c.publisher.Publish(ctx, published)
		switch v {
		case 10, 20:
			c.replaceNotifier()
		case 15:
			c.nats.Stop()
			c.nats.Start()
		}
		<-time.After(5 * time.Millisecond)
	}
	return nil
}
