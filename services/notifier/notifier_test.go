package notifier_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	notifierv1 "github.com/errandhq/errand/proto/gen/errand/notifier/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"

	"github.com/errandhq/errand/pkg/events"
	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/lifecycle/lifecycletest"
	"github.com/errandhq/errand/pkg/rpc"
	"github.com/errandhq/errand/pkg/telemetry"
	"github.com/errandhq/errand/pkg/testkit"
	"github.com/errandhq/errand/services/notifier"
)

const (
	working   = a2apb.TaskState_TASK_STATE_WORKING
	completed = a2apb.TaskState_TASK_STATE_COMPLETED
)

type bundle struct {
	testing.TB

	nats      *testkit.NATSServer
	store     *store
	service   *notifier.Service
	conn      *grpc.ClientConn
	publisher *events.Publisher
}

func setup(t testing.TB, compare time.Duration) *bundle {
	t.Helper()
	b := &bundle{TB: t, nats: testkit.NewNATSServer(t), store: newStore()}
	storeConn := testkit.GRPC(t, func(r grpc.ServiceRegistrar) { taskstorev1.RegisterTaskStoreServiceServer(r, b.store) })
	var err error
	b.service, err = notifier.New(t.Context(), notifier.Config{
		Logger: testkit.Logger(t), Telemetry: telemetry.Disabled(),
		TaskStore: storeConn, NATS: b.nats.Connect(), Compare: compare,
	})
	require.NoError(t, err)
	require.NoError(t, b.service.Start(t.Context()))
	b.conn = testkit.GRPC(t, b.service.Register)
	t.Cleanup(func() { require.NoError(t, b.service.Stop(context.Background())) })

	nc := b.nats.Connect()
	require.NoError(t, events.EnsureStream(t.Context(), nc, events.StreamConfig{}))
	b.publisher, err = events.NewPublisher(nc, events.PublisherConfig{})
	require.NoError(t, err)
	return b
}

func (b *bundle) publish(published ...*eventv1.Event) {
	b.Helper()
	require.NoError(b, b.publisher.Publish(b.Context(), published))
}

type stream struct {
	testing.TB
	notifierv1.NotifierService_WatchClient
}

func (b *bundle) open() *stream {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	b.Cleanup(cancel)
	s, err := notifierv1.NewNotifierServiceClient(b.conn).Watch(ctx)
	require.NoError(b, err)
	return &stream{b.TB, s}
}

func (s *stream) watch(id uint64, taskID string, after int64) {
	s.Helper()
	require.NoError(s, s.Send(&notifierv1.WatchRequest{WatchId: id, Kind: &notifierv1.WatchRequest_Watch{
		Watch: &notifierv1.WatchTask{Tenant: tenant, TaskId: taskID, After: after},
	}}))
}

func (s *stream) next() *notifierv1.WatchResponse {
	s.Helper()
	r, err := s.Recv()
	require.NoError(s, err)
	return r
}

// begin watches and waits until the watch is live.
func (s *stream) begin(id uint64, taskID string) {
	s.Helper()
	s.watch(id, taskID, -1)
	require.NotNil(s, s.next().GetWatching())
}

func TestServiceKeepsTheServiceContract(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	conn := testkit.GRPC(t, func(r grpc.ServiceRegistrar) { taskstorev1.RegisterTaskStoreServiceServer(r, newStore()) })
	lifecycletest.Stress(t, func(t *testing.T) lifecycle.Service {
		s, err := notifier.New(t.Context(), notifier.Config{
			Logger: testkit.Logger(t), Telemetry: telemetry.Disabled(), TaskStore: conn, NATS: nc,
		})
		require.NoError(t, err)
		return s
	})
}

func TestPublishedEventsReachEveryStream(t *testing.T) {
	t.Parallel()
	b := setup(t, time.Minute)
	b.store.commit("t", working)
	first, second := b.open(), b.open()
	first.begin(7, "t")
	second.begin(9, "t")
	b.publish(b.store.commit("t", working), b.store.commit("t", completed))
	for id, s := range map[uint64]*stream{7: first, 9: second} {
		for version := int64(2); version <= 3; version++ {
			r := s.next()
			require.Equal(t, id, r.GetWatchId())
			require.Equal(t, version, r.GetEvent().GetVersion())
		}
	}
}

func TestEventThatIsTooLargeForNATSArrivesWhole(t *testing.T) {
	t.Parallel()
	b := setup(t, time.Minute)
	b.store.commit("t", working)
	s := b.open()
	s.begin(1, "t")
	content := bytes.Repeat([]byte("x"), 3<<20)
	b.publish(b.store.commitKind("t", &eventv1.Event{Kind: &eventv1.Event_ArtifactUpdate{
		ArtifactUpdate: &a2apb.TaskArtifactUpdateEvent{TaskId: "t", Artifact: &a2apb.Artifact{
			ArtifactId: "a", Parts: []*a2apb.Part{{Content: &a2apb.Part_Raw{Raw: content}}},
		}},
	}}))
	require.Len(t, s.next().GetEvent().GetArtifactUpdate().GetArtifact().GetParts()[0].GetRaw(), len(content))
}

func TestEventsSurviveARestartOfNATS(t *testing.T) {
	t.Parallel()
	b := setup(t, time.Hour)
	b.store.commit("t", working)
	s := b.open()
	s.begin(1, "t")
	b.nats.Stop()
	require.Eventually(t, func() bool { return b.service.Ready() != nil }, time.Minute, time.Millisecond)
	b.store.commit("t", working) // Nobody will ever publish it.
	b.nats.Start()
	require.EqualValues(t, 2, s.next().GetEvent().GetVersion(), "the interruption is noticed")
	require.Eventually(t, func() bool { return b.service.Ready() == nil }, time.Minute, time.Millisecond)
	b.publish(b.store.commit("t", completed))
	require.EqualValues(t, 3, s.next().GetEvent().GetVersion())
}

func TestEventsArriveWhileNATSIsAway(t *testing.T) {
	t.Parallel()
	b := setup(t, 20*time.Millisecond)
	b.nats.Stop()
	b.store.commit("t", working)
	s := b.open()
	s.begin(1, "t")
	for version := int64(2); version <= 5; version++ {
		b.store.commit("t", working)
		require.Equal(t, version, s.next().GetEvent().GetVersion())
	}
}

func TestStopSendsGatewaysElsewhere(t *testing.T) {
	t.Parallel()
	b := setup(t, time.Minute)
	b.store.commit("t", working)
	s := b.open()
	s.begin(1, "t")
	require.NoError(t, b.service.Stop(t.Context()))
	_, err := s.Recv()
	require.Equal(t, codes.Unavailable, status.Code(err))
}

func TestServerStopsWithoutWaitingForGatewaysToLeave(t *testing.T) {
	t.Parallel()
	b := setup(t, time.Minute)
	b.store.commit("t", working)
	memory := rpc.NewInMemory()
	server, err := rpc.NewServer(rpc.ServerConfig{
		Listeners: []net.Listener{memory.Listener()}, Telemetry: telemetry.Disabled(), Logger: testkit.Logger(t),
	})
	require.NoError(t, err)
	b.service.Register(server.Registrar())
	require.NoError(t, server.Start(t.Context()))
	b.conn, err = rpc.Dial(rpc.ClientConfig{InMemory: memory, Telemetry: telemetry.Disabled()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.conn.Close()) })
	s := b.open()
	s.begin(1, "t")

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	require.NoError(t, b.service.Drain(ctx))
	require.NoError(t, server.Stop(ctx), "no stream had to be cut")
	_, err = s.Recv()
	require.Equal(t, codes.Unavailable, status.Code(err))
}

func TestAWatchIDThatIsInUseEndsTheStream(t *testing.T) {
	t.Parallel()
	b := setup(t, time.Minute)
	b.store.commit("t", working)
	s := b.open()
	s.begin(1, "t")
	s.watch(1, "u", -1)
	_, err := s.Recv()
	require.Equal(t, codes.InvalidArgument, status.Code(err))
}

func TestGatewayThatLeavesEndsTheStreamInGoodOrder(t *testing.T) {
	t.Parallel()
	b := setup(t, time.Minute)
	s := b.open()
	require.NoError(t, s.CloseSend())
	_, err := s.Recv()
	require.ErrorContains(t, err, "EOF")
}

// Events are published late, twice, in the wrong order or not at all, by tasks
// that run at the same time; whoever watches gets each version once, in order.
func TestNothingIsMissedWhateverIsPublished(t *testing.T) {
	t.Parallel()
	const tasks, versions = 40, 30
	b := setup(t, 100*time.Millisecond)
	s := b.open()
	rnd := rand.New(rand.NewPCG(3, 4))
	for i := range tasks {
		b.store.commit(fmt.Sprint("t", i), working)
		s.watch(uint64(i), fmt.Sprint("t", i), rnd.Int64N(2))
	}
	go func() {
		var late []*eventv1.Event
		for v := 2; v <= versions; v++ {
			for i := range tasks {
				state := working
				if v == versions {
					state = completed
				}
				e := b.store.commit(fmt.Sprint("t", i), state)
				switch rnd.IntN(4) {
				case 0:
				case 1:
					late = append(late, e)
				default:
					late = append(late, e, e)
				}
			}
			rnd.Shuffle(len(late), func(i, j int) { late[i], late[j] = late[j], late[i] })
			if b.publisher.Publish(b.Context(), late[:len(late)/2]) != nil {
				return // The test has ended.
			}
			late = late[len(late)/2:]
		}
	}()
	next, done := make([]int64, tasks), 0
	for done < tasks {
		r := s.next()
		switch i := r.GetWatchId(); {
		case r.GetWatching() != nil:
			next[i] = r.GetWatching().GetPosition() + 1
		default:
			require.Equal(t, next[i], r.GetEvent().GetVersion(), "task %d", i)
			if next[i]++; next[i] > versions {
				done++
			}
		}
	}
}
