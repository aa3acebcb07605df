package events_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	executorv1 "github.com/errandhq/errand/proto/gen/errand/executor/v1"

	"github.com/errandhq/errand/pkg/events"
	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/lifecycle/lifecycletest"
	"github.com/errandhq/errand/pkg/natsconn"
	"github.com/errandhq/errand/pkg/testkit"
)

const patience = 30 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func status(taskID string, version int64, state a2apb.TaskState) *eventv1.Event {
	return &eventv1.Event{
		Tenant: "default", Agent: "writer", TaskId: taskID, ContextId: "c", Version: version,
		Kind: &eventv1.Event_StatusUpdate{StatusUpdate: &a2apb.TaskStatusUpdateEvent{
			TaskId: taskID, ContextId: "c", Status: &a2apb.TaskStatus{State: state},
		}},
	}
}

func working(taskID string, version int64) *eventv1.Event {
	return status(taskID, version, a2apb.TaskState_TASK_STATE_WORKING)
}

func artifact(taskID string, version int64, size int) *eventv1.Event {
	return &eventv1.Event{
		Tenant: "default", Agent: "writer", TaskId: taskID, ContextId: "c", Version: version,
		Kind: &eventv1.Event_ArtifactUpdate{ArtifactUpdate: &a2apb.TaskArtifactUpdateEvent{
			TaskId: taskID, ContextId: "c", Artifact: &a2apb.Artifact{ArtifactId: "a", Parts: []*a2apb.Part{
				{Content: &a2apb.Part_Raw{Raw: make([]byte, size)}},
			}},
		}},
	}
}

func newPublisher(t testing.TB, nc *nats.Conn, purger *events.Purger) *events.Publisher {
	t.Helper()
	require.NoError(t, events.EnsureStream(within(t), nc, events.StreamConfig{}))
	p, err := events.NewPublisher(nc, events.PublisherConfig{Purger: purger})
	require.NoError(t, err)
	return p
}

// watch collects the events of task-1.
func watch(t *testing.T, nc *nats.Conn) <-chan *eventv1.Event {
	t.Helper()
	received := make(chan *eventv1.Event, 1000)
	sub, err := events.Subscribe(within(t), nc, "default", "task-1", func(_ context.Context, e *eventv1.Event) { received <- e })
	require.NoError(t, err)
	t.Cleanup(sub.Close)
	return received
}

func stream(t testing.TB, nc *nats.Conn) jetstream.Stream {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	s, err := js.Stream(within(t), events.Stream)
	require.NoError(t, err)
	return s
}

func stored(t testing.TB, nc *nats.Conn) uint64 {
	t.Helper()
	info, err := stream(t, nc).Info(within(t))
	require.NoError(t, err)
	return info.State.Msgs
}

func TestASubscriberGetsEveryEventOfItsTaskAndNoOther(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	p := newPublisher(t, nc, nil)
	received := watch(t, nc)
	foreign := working("task-1", 1000)
	foreign.Tenant = "other"
	var batch []*eventv1.Event
	for version := range int64(300) {
		batch = append(batch, working("task-1", version+1), working("task-2", version+1))
	}
	require.NoError(t, p.Publish(within(t), append(batch, foreign)))
	for version := range int64(300) {
		require.True(t, proto.Equal(working("task-1", version+1), <-received))
	}
	require.NoError(t, nc.Flush())
	require.Empty(t, received)
	require.Equal(t, uint64(601), stored(t, nc))
}

func TestARepeatedEventIsStoredOnce(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	p := newPublisher(t, nc, nil)
	for range 2 {
		require.NoError(t, p.Publish(within(t), []*eventv1.Event{working("task-1", 1), working("task-1", 2)}))
	}
	require.Equal(t, uint64(2), stored(t, nc))
}

func TestALargeEventTravelsByReference(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	p := newPublisher(t, nc, nil)
	received := watch(t, nc)
	small, large, huge := artifact("task-1", 1, 200<<10), artifact("task-1", 2, 256<<10), artifact("task-1", 3, 20<<20)
	require.NoError(t, p.Publish(within(t), []*eventv1.Event{small, large, huge}))
	require.True(t, proto.Equal(small, <-received))
	for _, whole := range []*eventv1.Event{large, huge} {
		got := <-received
		require.Nil(t, got.GetKind())
		require.Equal(t, whole.GetVersion(), got.GetVersion())
		require.Equal(t, whole.GetTaskId(), got.GetTaskId())
		require.NotNil(t, whole.GetKind(), "the caller's event stays whole")
	}
}

func TestIdsThatAreNoSubjectReachNobody(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	p := newPublisher(t, nc, nil)
	for _, id := range []string{"", "a.b", "*", ">", "a b", "a\r\nPUB x 0", "ünï", strings.Repeat("a", 300)} {
		_, err := events.Subscribe(within(t), nc, "default", id, func(context.Context, *eventv1.Event) {})
		require.ErrorIs(t, err, natsconn.ErrBadToken, "%q", id)
		_, err = events.Subscribe(within(t), nc, id, "task-1", func(context.Context, *eventv1.Event) {})
		require.ErrorIs(t, err, natsconn.ErrBadToken, "%q", id)
		_, err = events.SubscribeControl(nc, id, func(context.Context, *executorv1.Control) {})
		require.ErrorIs(t, err, natsconn.ErrBadToken, "%q", id)
		require.ErrorIs(t, events.SendControl(within(t), nc, id, &executorv1.Control{}), natsconn.ErrBadToken, "%q", id)
		require.ErrorIs(t, p.Publish(within(t), []*eventv1.Event{working(id, 1)}), natsconn.ErrBadToken, "%q", id)
	}
	require.Zero(t, stored(t, nc))
}

func TestWhatIsNoEventIsPassedOver(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	p := newPublisher(t, nc, nil)
	received := watch(t, nc)
	for _, data := range [][]byte{nil, {0xff}, []byte("nonsense")} {
		require.NoError(t, nc.Publish("errand.events.default.task-1", data))
	}
	require.NoError(t, p.Publish(within(t), []*eventv1.Event{working("task-1", 7)}))
	require.Equal(t, int64(7), (<-received).GetVersion())
}

func TestAClosedSubscriptionGetsNothing(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	p := newPublisher(t, nc, nil)
	before := nc.NumSubscriptions()
	sub, err := events.Subscribe(within(t), nc, "default", "task-1", func(context.Context, *eventv1.Event) {
		t.Error("called after Close")
	})
	require.NoError(t, err)
	sub.Close()
	sub.Close()
	require.Equal(t, before, nc.NumSubscriptions())
	require.NoError(t, p.Publish(within(t), []*eventv1.Event{working("task-1", 1)}))
}

func TestSubscribingAndPublishingFailWithoutNATS(t *testing.T) {
	t.Parallel()
	srv := testkit.NewNATSServer(t)
	nc := srv.Connect()
	p := newPublisher(t, nc, nil)
	srv.Stop()
	require.Eventually(t, func() bool { return natsconn.Ready(nc) != nil }, patience, time.Millisecond)
	before := nc.NumSubscriptions()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := events.Subscribe(ctx, nc, "default", "task-1", func(context.Context, *eventv1.Event) {})
	require.Error(t, err)
	require.Equal(t, before, nc.NumSubscriptions(), "a failed subscription leaves nothing behind")
	require.ErrorIs(t, p.Publish(within(t), []*eventv1.Event{working("task-1", 1)}), natsconn.ErrDisconnected)
}

func TestASubscriptionAndThePublisherSurviveARestartOfNATS(t *testing.T) {
	t.Parallel()
	srv := testkit.NewNATSServer(t)
	nc := srv.Connect()
	p := newPublisher(t, nc, nil)
	received := watch(t, nc)
	require.NoError(t, p.Publish(within(t), []*eventv1.Event{working("task-1", 1)}))
	require.Equal(t, int64(1), (<-received).GetVersion())
	srv.Stop()
	require.Eventually(t, func() bool { return natsconn.Ready(nc) != nil }, patience, time.Millisecond)
	srv.Start()
	require.Eventually(t, func() bool { return natsconn.Ready(nc) == nil }, patience, time.Millisecond)
	require.NoError(t, p.Publish(within(t), []*eventv1.Event{working("task-1", 2)}))
	require.Equal(t, int64(2), (<-received).GetVersion())
	require.Equal(t, uint64(2), stored(t, nc), "the stream is still there")
}

func TestThePublisherMakesAStreamThatHasGone(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	p := newPublisher(t, nc, nil)
	_, err := nc.RequestWithContext(within(t), "$JS.API.STREAM.DELETE."+events.Stream, nil)
	require.NoError(t, err)
	require.NoError(t, p.Publish(within(t), []*eventv1.Event{working("task-1", 1)}))
	require.Equal(t, uint64(1), stored(t, nc))
}

func TestAFullStreamDropsTheOldestEvents(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	cfg := events.StreamConfig{MaxBytes: 64 << 10}
	require.NoError(t, events.EnsureStream(within(t), nc, cfg))
	p, err := events.NewPublisher(nc, events.PublisherConfig{Stream: cfg})
	require.NoError(t, err)
	for version := range int64(2000) {
		require.NoError(t, p.Publish(within(t), []*eventv1.Event{working("task-1", version+1)}))
	}
	msg, err := stream(t, nc).GetLastMsgForSubject(within(t), "errand.events.default.task-1")
	require.NoError(t, err)
	require.Equal(t, "task-1:2000", msg.Header.Get(nats.MsgIdHdr))
	require.Less(t, stored(t, nc), uint64(2000))
}

func TestTheEventStreamEndsAfterADay(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	newPublisher(t, nc, nil)
	cfg := stream(t, nc).CachedInfo().Config
	require.Equal(t, 24*time.Hour, cfg.MaxAge)
	require.Equal(t, jetstream.DiscardOld, cfg.Discard)
	require.Equal(t, jetstream.FileStorage, cfg.Storage)
	require.Positive(t, cfg.MaxBytes)
}

func TestPurgerKeepsTheServiceContract(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	lifecycletest.Stress(t, func(t *testing.T) lifecycle.Service { return newPurger(t, nc, time.Minute) })
}

func newPurger(t *testing.T, nc *nats.Conn, delay time.Duration) *events.Purger {
	t.Helper()
	p, err := events.NewPurger(nc, events.PurgerConfig{Delay: delay, Logger: testkit.Logger(t)})
	require.NoError(t, err)
	return p
}

func TestOnlyTerminalTasksArePurged(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	purger := newPurger(t, nc, 10*time.Millisecond)
	require.NoError(t, purger.Start(within(t)))
	t.Cleanup(func() { require.NoError(t, purger.Stop(context.Background())) })
	p := newPublisher(t, nc, purger)
	terminal := []a2apb.TaskState{
		a2apb.TaskState_TASK_STATE_COMPLETED, a2apb.TaskState_TASK_STATE_FAILED,
		a2apb.TaskState_TASK_STATE_CANCELED, a2apb.TaskState_TASK_STATE_REJECTED,
	}
	for i, state := range terminal {
		id := fmt.Sprint("done-", i)
		require.NoError(t, p.Publish(within(t), []*eventv1.Event{working(id, 1), status(id, 2, state)}))
	}
	require.NoError(t, p.Publish(within(t), []*eventv1.Event{
		working("open", 1), status("open", 2, a2apb.TaskState_TASK_STATE_INPUT_REQUIRED), artifact("open", 3, 10),
	}))
	require.Eventually(t, func() bool { return stored(t, nc) == 3 }, patience, 5*time.Millisecond)
	msg, err := stream(t, nc).GetLastMsgForSubject(within(t), "errand.events.default.open")
	require.NoError(t, err)
	require.Equal(t, "open:3", msg.Header.Get(nats.MsgIdHdr))
}

func TestAPurgeNeedsNeitherNATSNorTheStream(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	purger := newPurger(t, nc, time.Nanosecond)
	require.NoError(t, purger.Start(within(t)))
	purger.Add("default", "task-1")
	purger.Add("default", "no.subject")
	require.NoError(t, purger.Stop(within(t)))
}

func TestControlReachesItsHolderAlone(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	received := make(chan *executorv1.Control, 10)
	traces := make(chan string, 10)
	sub, err := events.SubscribeControl(nc, "holder-1", func(ctx context.Context, c *executorv1.Control) {
		traces <- trace.SpanContextFromContext(ctx).TraceID().String()
		received <- c
	})
	require.NoError(t, err)
	defer sub.Close()
	require.NoError(t, nc.Flush())

	control := &executorv1.Control{TaskId: "task-1", LeaseEpoch: 3, Kind: &executorv1.Control_Canceled{Canceled: &executorv1.Canceled{}}}
	ctx := natsconn.TraceContext(within(t), "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	require.NoError(t, events.SendControl(ctx, nc, "holder-2", control))
	require.NoError(t, nc.Publish("errand.control.holder-1", []byte("nonsense")))
	require.NoError(t, events.SendControl(ctx, nc, "holder-1", control))
	require.True(t, proto.Equal(control, <-received))
	require.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", <-traces)
	require.NoError(t, nc.Flush())
	require.Empty(t, received)
}

func TestTraceContextTravelsWithAnEvent(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	p := newPublisher(t, nc, nil)
	traces := make(chan string, 1)
	sub, err := events.Subscribe(within(t), nc, "default", "task-1", func(ctx context.Context, _ *eventv1.Event) {
		traces <- trace.SpanContextFromContext(ctx).TraceID().String()
	})
	require.NoError(t, err)
	defer sub.Close()
	ctx := natsconn.TraceContext(within(t), "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	require.NoError(t, p.Publish(ctx, []*eventv1.Event{working("task-1", 1)}))
	require.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", <-traces)
}

func TestThousandsOfSubscriptionsNeedNoConsumer(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	p := newPublisher(t, nc, nil)
	const tasks = 2000
	received := make(chan string, tasks)
	var batch []*eventv1.Event
	for i := range tasks {
		id := fmt.Sprint("task-", i)
		sub, err := events.Subscribe(within(t), nc, "default", id, func(_ context.Context, e *eventv1.Event) { received <- e.GetTaskId() })
		require.NoError(t, err)
		defer sub.Close()
		batch = append(batch, working(id, 1))
	}
	require.NoError(t, p.Publish(within(t), batch))
	var ids []string
	for range tasks {
		ids = append(ids, <-received)
	}
	slices.Sort(ids)
	require.Len(t, slices.Compact(ids), tasks)
	info, err := stream(t, nc).Info(within(t))
	require.NoError(t, err)
	require.Zero(t, info.State.Consumers)
}

// BenchmarkPurge is the cost of removing one task's three events from a stream
// with many others.
func BenchmarkPurge(b *testing.B) {
	nc := testkit.NATS(b)
	p := newPublisher(b, nc, nil)
	var batch []*eventv1.Event
	for i := range 20_000 {
		for version := range int64(3) {
			batch = append(batch, working(fmt.Sprint("task-", i), version+1))
		}
	}
	require.NoError(b, p.Publish(within(b), batch))
	s := stream(b, nc)
	n := 0
	for b.Loop() {
		require.NoError(b, s.Purge(b.Context(), jetstream.WithPurgeSubject(fmt.Sprint("errand.events.default.task-", n%20_000))))
		n++
	}
}
