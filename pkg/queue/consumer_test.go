package queue_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/lifecycle/lifecycletest"
	"github.com/errandhq/errand/pkg/natsconn"
	"github.com/errandhq/errand/pkg/queue"
	"github.com/errandhq/errand/pkg/testkit"
)

func TestConsumerKeepsTheServiceContract(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	lifecycletest.Stress(t, func(t *testing.T) lifecycle.Service {
		c, err := queue.NewConsumer(nc, queue.ConsumerConfig{Agent: "writer", Logger: testkit.Logger(t)})
		require.NoError(t, err)
		return c
	})
}

func TestNextReturnsWhatIsThereAndNeverMoreThanFree(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	p := newPublisher(t, nc)
	items := works("default", 25)
	publish(t, p, items...)
	c := newConsumer(t, nc)
	var ids []string
	for len(ids) < len(items) {
		ids = append(ids, next(t, c, 4)...)
	}
	slices.Sort(ids)
	require.Equal(t, taskIDs(items), ids)
	requireEmpty(t, nc)
}

func TestNextDoesNotWaitForAllSlotsToFill(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	p := newPublisher(t, nc)
	// The listing is out of the way: only the wake-up can bring the work in time.
	c := newConsumer(t, nc, func(cfg *queue.ConsumerConfig) { cfg.ListInterval = time.Hour })
	require.Eventually(t, func() bool { return c.Ready() == nil }, patience, time.Millisecond)
	for i := range 20 {
		published := make(chan time.Time, 1)
		go func() {
			published <- time.Now()
			_ = p.Publish(t.Context(), work("default", i))
		}()
		require.Len(t, next(t, c, 50), 1)
		require.Less(t, time.Since(<-published), 500*time.Millisecond)
	}
}

func TestATenantsSingleMessageIsNotBehindAnothersBacklog(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	p := newPublisher(t, nc)
	publish(t, p, works("huge", 10_000)...)
	c := newConsumer(t, nc)
	next(t, c, 10)
	publish(t, p, work("small", 0))
	for range 5 {
		if slices.Contains(next(t, c, 1), "small-task-0") {
			return
		}
	}
	t.Fatal("the single message was not among the next five")
}

func TestTenantsAreServedByWeight(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	p := newPublisher(t, nc)
	for _, tenant := range []string{"gold", "iron"} {
		publish(t, p, works(tenant, 200)...)
	}
	c := newConsumer(t, nc, func(cfg *queue.ConsumerConfig) {
		cfg.Weight = func(tenant string) int { return map[string]int{"gold": 3}[tenant] }
	})
	require.Eventually(t, func() bool { return c.Ready() == nil }, patience, time.Millisecond)
	gold := 0
	for range 100 {
		if id := next(t, c, 1)[0]; id[:4] == "gold" {
			gold++
		}
	}
	require.InDelta(t, 75, gold, 2)
}

func TestManyTenantsAreAskedAtOnce(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	p := newPublisher(t, nc)
	var items []queue.Item
	for i := range 40 {
		items = append(items, works("tenant-"+string(rune('a'+i%26))+string(rune('a'+i/26)), 2)...)
	}
	publish(t, p, items...)
	require.Equal(t, taskIDs(items), all(t, newConsumer(t, nc), len(items)))
}

func TestExecutorsShareTheWork(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	p := newPublisher(t, nc)
	items := works("default", 300)
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	var mu sync.Mutex
	var ids []string
	var executors sync.WaitGroup
	for range 3 {
		c := newConsumer(t, nc)
		executors.Go(func() {
			for {
				deliveries, err := c.Next(ctx, 7)
				if err != nil {
					return
				}
				mu.Lock()
				for _, d := range deliveries {
					ids = append(ids, d.Item.GetTaskId())
					_ = d.Ack()
				}
				if len(ids) >= len(items) {
					cancel()
				}
				mu.Unlock()
			}
		})
	}
	publish(t, p, items...)
	executors.Wait()
	slices.Sort(ids)
	require.Equal(t, taskIDs(items), ids)
}

func TestAnUnacknowledgedDeliveryComesAgain(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	p := newPublisher(t, nc)
	quick := func(cfg *queue.ConsumerConfig) {
		cfg.AckWait = 300 * time.Millisecond
		cfg.ListInterval = 50 * time.Millisecond
	}
	c := newConsumer(t, nc, quick)
	publish(t, p, work("default", 1))
	for delivery := range 4 {
		deliveries, err := c.Next(within(t), 5)
		require.NoError(t, err)
		require.Len(t, deliveries, 1)
		require.Equal(t, delivery > 0, deliveries[0].Redelivered)
	}
	// Far above any usual delivery limit the message must still not be orphaned.
	require.Equal(t, []string{"default-task-1"}, all(t, newConsumer(t, nc, quick), 1))
	requireEmpty(t, nc)
}

func TestARetriedDeliveryComesAgainAfterTheDelay(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	p := newPublisher(t, nc)
	c := newConsumer(t, nc, func(cfg *queue.ConsumerConfig) { cfg.ListInterval = 50 * time.Millisecond })
	publish(t, p, work("default", 1))
	deliveries, err := c.Next(within(t), 1)
	require.NoError(t, err)
	began := time.Now()
	require.NoError(t, deliveries[0].Retry(400*time.Millisecond))
	next(t, c, 1)
	require.GreaterOrEqual(t, time.Since(began), 390*time.Millisecond)
}

func TestPoisonIsRemovedAndTheRestGoesOn(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	p := newPublisher(t, nc)
	for _, data := range [][]byte{nil, {0xff, 0xff}, []byte("not a work item")} {
		require.NoError(t, nc.Publish("errand.work.writer.default", data))
	}
	foreign := work("other", 1)
	publish(t, p, foreign, work("default", 1))
	c := newConsumer(t, nc)
	require.Equal(t, []string{"default-task-1", "other-task-1"}, all(t, c, 2))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := c.Next(ctx, 5)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	requireEmpty(t, nc)
}

func TestWhatComesAgainAndAgainIsRemoved(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	p := newPublisher(t, nc)
	c := newConsumer(t, nc, func(cfg *queue.ConsumerConfig) { cfg.ListInterval = 5 * time.Millisecond })
	publish(t, p, work("default", 1))
	for range 100 {
		deliveries, err := c.Next(within(t), 1)
		require.NoError(t, err)
		require.NoError(t, deliveries[0].Retry(0))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := c.Next(ctx, 5)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	requireEmpty(t, nc)
}

// An older version may have had other consumers; two on one subject are refused.
func TestConsumersOfAnOlderVersionKeepNoWorkBack(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	p := newPublisher(t, nc)
	_, err := stream(t, nc).CreateConsumer(within(t), jetstream.ConsumerConfig{
		Durable: "writer", FilterSubject: "errand.work.writer.*", AckPolicy: jetstream.AckExplicitPolicy,
	})
	require.NoError(t, err)
	publish(t, p, work("default", 1))
	require.Equal(t, []string{"default-task-1"}, all(t, newConsumer(t, nc), 1))
}

func TestAConsumerThatCannotBeMadeMakesTheExecutorUnready(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	p := newPublisher(t, nc)
	cfg := stream(t, nc).CachedInfo().Config
	deleteStream(t, nc)
	cfg.MaxConsumers = 1
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	_, err = js.CreateStream(within(t), cfg)
	require.NoError(t, err)
	_, err = js.CreateConsumer(within(t), queue.Stream, jetstream.ConsumerConfig{
		Durable: "other", FilterSubject: "errand.work.other.default", AckPolicy: jetstream.AckExplicitPolicy,
	})
	require.NoError(t, err)
	c := newConsumer(t, nc, func(cfg *queue.ConsumerConfig) { cfg.ListInterval = 20 * time.Millisecond })
	publish(t, p, work("default", 1))
	requireUnreadyUntil(t, c, func() { require.NoError(t, stream(t, nc).DeleteConsumer(within(t), "other")) })
}

func TestAConsumerThatDoesNotAnswerMakesTheExecutorUnready(t *testing.T) {
	t.Parallel()
	srv := &silentServer{NATSServer: testkit.NewNATSServer(t)}
	nc, err := natsconn.Connect(within(t), natsconn.Config{InProcess: srv, Name: t.Name(), Logger: testkit.Logger(t)})
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	_, err = nc.Subscribe("$JS.API.CONSUMER.MSG.NONE.>", func(*nats.Msg) {})
	require.NoError(t, err)
	p := newPublisher(t, nc)
	c := newConsumer(t, nc, func(cfg *queue.ConsumerConfig) { cfg.ListInterval = 20 * time.Millisecond })
	srv.silent.Store(true)
	publish(t, p, work("default", 1))
	requireUnreadyUntil(t, c, func() { srv.silent.Store(false) })
}

// Another executor may have had the work meanwhile.
func TestAFailureIsOverWhenThereIsNoWorkLeft(t *testing.T) {
	t.Parallel()
	srv := &silentServer{NATSServer: testkit.NewNATSServer(t)}
	nc, err := natsconn.Connect(within(t), natsconn.Config{InProcess: srv, Name: t.Name(), Logger: testkit.Logger(t)})
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	p := newPublisher(t, nc)
	c := newConsumer(t, nc, func(cfg *queue.ConsumerConfig) { cfg.ListInterval = 20 * time.Millisecond })
	require.Eventually(t, func() bool { return c.Ready() == nil }, patience, time.Millisecond)
	srv.silent.Store(true) // nobody at all answers
	publish(t, p, work("default", 1))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = c.Next(ctx, 1)
	}()
	require.Eventually(t, func() bool { return c.Ready() != nil }, patience, time.Millisecond)
	cancel()
	<-ended
	require.NoError(t, stream(t, nc).Purge(within(t)))
	require.Eventually(t, func() bool { return c.Ready() == nil }, 10*time.Second, time.Millisecond)
}

// requireUnreadyUntil wants the one message that waits to be delivered after the
// repair, and not before.
func requireUnreadyUntil(t *testing.T, c *queue.Consumer, repair func()) {
	t.Helper()
	require.Eventually(t, func() bool { return c.Ready() == nil }, patience, time.Millisecond)
	taken := make(chan []queue.Delivery, 1)
	go func() {
		deliveries, _ := c.Next(t.Context(), 1)
		taken <- deliveries
	}()
	require.Eventually(t, func() bool { return c.Ready() != nil }, patience, time.Millisecond)
	repair()
	deliveries := <-taken
	require.Len(t, deliveries, 1)
	require.NoError(t, deliveries[0].Ack())
	require.NoError(t, c.Ready())
}

// silentServer is a server that, while it is silent, gets no request for messages.
type silentServer struct {
	*testkit.NATSServer

	silent atomic.Bool
}

func (s *silentServer) InProcessConn() (net.Conn, error) {
	conn, err := s.NATSServer.InProcessConn()
	return &silentConn{Conn: conn, server: s}, err
}

type silentConn struct {
	net.Conn

	server *silentServer
}

func (c *silentConn) Write(data []byte) (int, error) {
	if c.server.silent.Load() {
		data = bytes.ReplaceAll(data, []byte("CONSUMER.MSG.NEXT"), []byte("CONSUMER.MSG.NONE"))
	}
	return c.Conn.Write(data)
}

func TestADeletedConsumerIsMadeAnewAtOnce(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	p := newPublisher(t, nc)
	// The listing would help too, later.
	c := newConsumer(t, nc, func(cfg *queue.ConsumerConfig) { cfg.ListInterval = time.Hour })
	publish(t, p, work("default", 1))
	all(t, c, 1)
	requireEmpty(t, nc)
	require.NoError(t, stream(t, nc).DeleteConsumer(within(t), "writer_default"))
	publish(t, p, work("default", 2))
	require.Equal(t, []string{"default-task-2"}, all(t, c, 1))
}

func TestAnIdleTenantsConsumerIsRemovedAndComesBack(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	p := newPublisher(t, nc)
	c := newConsumer(t, nc, func(cfg *queue.ConsumerConfig) {
		cfg.InactiveThreshold = 200 * time.Millisecond
		cfg.ListInterval = 50 * time.Millisecond
	})
	publish(t, p, work("default", 1))
	all(t, c, 1)
	require.Eventually(t, func() bool {
		_, err := stream(t, nc).Consumer(t.Context(), "writer_default")
		return err != nil
	}, patience, 20*time.Millisecond)
	publish(t, p, work("default", 2))
	require.Equal(t, []string{"default-task-2"}, all(t, c, 1))
}

func TestConsumerGoesOnAfterARestartOfNATS(t *testing.T) {
	t.Parallel()
	srv := testkit.NewNATSServer(t)
	nc := srv.Connect()
	p := newPublisher(t, nc)
	c := newConsumer(t, nc, func(cfg *queue.ConsumerConfig) { cfg.ListInterval = 100 * time.Millisecond })
	publish(t, p, works("default", 2)...)
	next(t, c, 1)

	srv.Stop()
	require.Eventually(t, func() bool { return c.Ready() != nil }, patience, time.Millisecond, "not ready while NATS is away")
	srv.Start()
	require.Eventually(t, func() bool { return natsconn.Ready(nc) == nil }, patience, time.Millisecond)
	publish(t, p, work("default", 3))
	require.Equal(t, []string{"default-task-1", "default-task-3"}, all(t, c, 2))
	require.Eventually(t, func() bool { return c.Ready() == nil }, patience, time.Millisecond)
}

func TestConsumerGoesOnAfterTheStreamWasLost(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	p := newPublisher(t, nc)
	c := newConsumer(t, nc)
	publish(t, p, work("default", 1))
	all(t, c, 1)
	require.NoError(t, stream(t, nc).Purge(within(t)))
	publish(t, p, work("default", 2))
	all(t, c, 1)
	requireEmpty(t, nc)
	deleteStream(t, nc)
	publish(t, p, work("default", 3))
	require.Equal(t, []string{"default-task-3"}, all(t, c, 1))
}

func TestConsumerStartsBeforeNATSAndBeforeTheStream(t *testing.T) {
	t.Parallel()
	srv := testkit.NewNATSServer(t)
	nc := srv.Connect()
	srv.Stop()
	require.Eventually(t, func() bool { return natsconn.Ready(nc) != nil }, patience, time.Millisecond)
	c := newConsumer(t, nc, func(cfg *queue.ConsumerConfig) { cfg.ListInterval = 50 * time.Millisecond })
	require.Error(t, c.Ready())
	srv.Start()
	require.Eventually(t, func() bool { return c.Ready() == nil }, patience, time.Millisecond)
	publish(t, newPublisher(t, nc), work("default", 1))
	all(t, c, 1)
}

func TestNextEndsWithItsContextAndWithTheConsumer(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	newPublisher(t, nc)
	c := newConsumer(t, nc)
	ctx, cancel := context.WithCancelCause(t.Context())
	drain := errors.New("drain")
	time.AfterFunc(20*time.Millisecond, func() { cancel(drain) })
	_, err := c.Next(ctx, 1)
	require.ErrorIs(t, err, drain)

	ended := make(chan error)
	go func() {
		_, err := c.Next(t.Context(), 1)
		ended <- err
	}()
	require.NoError(t, c.Stop(within(t)))
	require.ErrorIs(t, <-ended, lifecycle.ErrStopped)
}

func TestTraceContextTravelsWithTheWork(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	p := newPublisher(t, nc)
	c := newConsumer(t, nc)
	const own = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	const batch = "00-11111111111111111111111111111111-2222222222222222-01"
	item := work("default", 1)
	item.Traceparent = own
	ctx := natsconn.TraceContext(within(t), batch)
	for _, result := range p.Publish(ctx, item, work("default", 2)) {
		require.NoError(t, result.Err)
	}
	traces := map[string]string{}
	for len(traces) < 2 {
		deliveries, err := c.Next(within(t), 2)
		require.NoError(t, err)
		for _, d := range deliveries {
			traces[d.Item.GetTaskId()] = trace.SpanContextFromContext(d.Context(t.Context())).TraceID().String()
			require.NoError(t, d.Ack())
		}
	}
	require.Equal(t, map[string]string{
		"default-task-1": "4bf92f3577b34da6a3ce929d0e0e4736",
		"default-task-2": "11111111111111111111111111111111",
	}, traces)
}

func deleteStream(t *testing.T, nc *nats.Conn) {
	t.Helper()
	_, err := nc.RequestWithContext(within(t), "$JS.API.STREAM.DELETE."+queue.Stream, nil)
	require.NoError(t, err)
}
