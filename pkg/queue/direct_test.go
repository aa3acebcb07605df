package queue_test

import (
	"context"
	"strings"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	executorv1 "github.com/errandhq/errand/proto/gen/errand/executor/v1"

	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/lifecycle/lifecycletest"
	"github.com/errandhq/errand/pkg/natsconn"
	"github.com/errandhq/errand/pkg/queue"
	"github.com/errandhq/errand/pkg/testkit"
)

type handler = func(context.Context, *executorv1.DirectRequest) *executorv1.DirectReply

func text(s string) *a2apb.Message {
	return &a2apb.Message{MessageId: "m", Parts: []*a2apb.Part{{Content: &a2apb.Part_Text{Text: s}}}}
}

func ask(s string) *executorv1.DirectRequest {
	return &executorv1.DirectRequest{Tenant: "default", Agent: "writer", Message: text(s)}
}

func reply(s string) *executorv1.DirectReply {
	return &executorv1.DirectReply{Kind: &executorv1.DirectReply_Message{Message: text(s)}}
}

func echo(_ context.Context, req *executorv1.DirectRequest) *executorv1.DirectReply {
	return reply(said(req.GetMessage()))
}

func said(m *a2apb.Message) string { return m.GetParts()[0].GetText() }

func newResponder(t *testing.T, nc *nats.Conn, limit int, h handler) *queue.Responder {
	t.Helper()
	r, err := queue.NewResponder(nc, queue.ResponderConfig{Agent: "writer", Limit: limit, Handler: h, Logger: testkit.Logger(t)})
	require.NoError(t, err)
	return r
}

func respond(t *testing.T, nc *nats.Conn, limit int, h handler) *queue.Responder {
	t.Helper()
	r := newResponder(t, nc, limit, h)
	require.NoError(t, r.Start(within(t)))
	require.NoError(t, nc.Flush())
	t.Cleanup(func() { require.NoError(t, r.Stop(context.Background())) })
	return r
}

func TestResponderKeepsTheServiceContract(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	lifecycletest.Stress(t, func(t *testing.T) lifecycle.Service { return newResponder(t, nc, 1, echo) })
}

func TestADirectMessageIsAnswered(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	respond(t, nc, 2, echo)
	answer, err := queue.NewDirect(nc).Request(within(t), ask("hello\x00"))
	require.NoError(t, err)
	require.Equal(t, "hello\x00", said(answer.GetMessage()))
}

func TestWithoutAnExecutorTheRequestFailsAtOnce(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	began := time.Now()
	_, err := queue.NewDirect(nc).Request(within(t), ask("hello"))
	require.ErrorIs(t, err, queue.ErrNoExecutor)
	require.Less(t, time.Since(began), 5*time.Second)
}

func TestABusyExecutorSaysSoInsteadOfQueueing(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	release, entered := make(chan struct{}), make(chan struct{})
	respond(t, nc, 1, func(ctx context.Context, req *executorv1.DirectRequest) *executorv1.DirectReply {
		close(entered)
		<-release
		return echo(ctx, req)
	})
	direct := queue.NewDirect(nc)
	first := make(chan *executorv1.DirectReply)
	go func() {
		answer, _ := direct.Request(within(t), ask("first"))
		first <- answer
	}()
	<-entered
	answer, err := direct.Request(within(t), ask("second"))
	require.NoError(t, err)
	require.Equal(t, executorv1.DirectFailure_KIND_BUSY, answer.GetFailure().GetKind())
	close(release)
	require.Equal(t, "first", said((<-first).GetMessage()))
}

func TestEachRequestReachesOneExecutor(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	calls := make(chan struct{}, 100)
	count := func(ctx context.Context, req *executorv1.DirectRequest) *executorv1.DirectReply {
		calls <- struct{}{}
		return echo(ctx, req)
	}
	for range 3 {
		respond(t, nc, 4, count)
	}
	direct := queue.NewDirect(nc)
	for range 20 {
		_, err := direct.Request(within(t), ask("hello"))
		require.NoError(t, err)
	}
	require.Len(t, calls, 20)
}

func TestTheHandlersContextEndsWithTheSendersPatience(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	ended, release := make(chan error, 1), make(chan struct{})
	respond(t, nc, 1, func(ctx context.Context, _ *executorv1.DirectRequest) *executorv1.DirectReply {
		<-ctx.Done()
		ended <- ctx.Err()
		<-release
		return reply("too late")
	})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := queue.NewDirect(nc).Request(ctx, ask("hello"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, <-ended, context.DeadlineExceeded)
	close(release)
}

func TestAPanicFailsOneRequestAlone(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	respond(t, nc, 1, func(ctx context.Context, req *executorv1.DirectRequest) *executorv1.DirectReply {
		if said(req.GetMessage()) == "panic" {
			panic("secret")
		}
		return echo(ctx, req)
	})
	direct := queue.NewDirect(nc)
	answer, err := direct.Request(within(t), ask("panic"))
	require.NoError(t, err)
	require.Equal(t, executorv1.DirectFailure_KIND_AGENT, answer.GetFailure().GetKind())
	require.NotContains(t, answer.GetFailure().GetMessage(), "secret")
	require.Eventually(t, func() bool {
		answer, err := direct.Request(within(t), ask("again"))
		return err == nil && answer.GetMessage() != nil
	}, patience, time.Millisecond)
}

func TestWhatNATSCannotCarryIsRefusedWithAReason(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	respond(t, nc, 1, func(context.Context, *executorv1.DirectRequest) *executorv1.DirectReply {
		return reply(strings.Repeat("x", 9<<20))
	})
	direct := queue.NewDirect(nc)
	_, err := direct.Request(within(t), ask(strings.Repeat("x", 9<<20)))
	require.ErrorIs(t, err, queue.ErrTooLarge)
	answer, err := direct.Request(within(t), ask("long please"))
	require.NoError(t, err)
	require.Equal(t, executorv1.DirectFailure_KIND_AGENT, answer.GetFailure().GetKind())
}

func TestAnUnreadableRequestIsAnswered(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	respond(t, nc, 1, echo)
	msg, err := nc.RequestWithContext(within(t), "errand.direct.writer", []byte("nonsense"))
	require.NoError(t, err)
	require.NotEmpty(t, msg.Data)
}

func TestStopWaitsForTheRequestsInHand(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	release, entered := make(chan struct{}), make(chan struct{})
	r := respond(t, nc, 1, func(ctx context.Context, req *executorv1.DirectRequest) *executorv1.DirectReply {
		close(entered)
		<-release
		return echo(ctx, req)
	})
	answered := make(chan *executorv1.DirectReply)
	go func() {
		answer, _ := queue.NewDirect(nc).Request(within(t), ask("in hand"))
		answered <- answer
	}()
	<-entered
	stopped := make(chan error)
	go func() { stopped <- r.Stop(within(t)) }()
	require.Eventually(t, func() bool { return r.Ready() != nil }, patience, time.Millisecond)
	require.Empty(t, stopped)
	close(release)
	require.Equal(t, "in hand", said((<-answered).GetMessage()))
	require.NoError(t, <-stopped)
	_, err := queue.NewDirect(nc).Request(within(t), ask("too late"))
	require.ErrorIs(t, err, queue.ErrNoExecutor)
}

func TestAHardStopEndsTheHandlersContext(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	cause, entered := make(chan error, 1), make(chan struct{})
	r := respond(t, nc, 1, func(ctx context.Context, _ *executorv1.DirectRequest) *executorv1.DirectReply {
		close(entered)
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return reply("")
	})
	go func() { _, _ = queue.NewDirect(nc).Request(within(t), ask("hello")) }()
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, r.Stop(ctx), context.Canceled)
	require.ErrorIs(t, <-cause, lifecycle.ErrStopped)
}

func TestTraceContextTravelsWithADirectMessage(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	traces := make(chan string, 1)
	respond(t, nc, 1, func(ctx context.Context, req *executorv1.DirectRequest) *executorv1.DirectReply {
		traces <- trace.SpanContextFromContext(ctx).TraceID().String()
		return echo(ctx, req)
	})
	ctx := natsconn.TraceContext(within(t), "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	_, err := queue.NewDirect(nc).Request(ctx, ask("hello"))
	require.NoError(t, err)
	require.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", <-traces)
}

func TestAgentsWithoutAProperNameAreRefused(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	for _, name := range []string{"", "a.b", "*", "a b", strings.Repeat("a", 101)} {
		_, err := queue.NewDirect(nc).Request(within(t), &executorv1.DirectRequest{Agent: name})
		require.ErrorIs(t, err, queue.ErrBadName, "%q", name)
		_, err = queue.NewResponder(nc, queue.ResponderConfig{Agent: name, Limit: 1})
		require.ErrorIs(t, err, queue.ErrBadName, "%q", name)
		_, err = queue.NewConsumer(nc, queue.ConsumerConfig{Agent: name})
		require.ErrorIs(t, err, queue.ErrBadName, "%q", name)
		_, err = queue.Depths(within(t), nc, name)
		require.ErrorIs(t, err, queue.ErrBadName, "%q", name)
	}
}
