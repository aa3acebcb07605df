package gateway_test

import (
	"context"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/auth"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/lifecycle/lifecycletest"
	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/pkg/telemetry"
	"github.com/errandhq/errand/pkg/testkit"
	"github.com/errandhq/errand/services/gateway"
)

type panicking struct{}

func (panicking) Authenticate(context.Context, auth.Metadata) (auth.Identity, error) {
	panic("secret")
}

func TestStoppingEndsStreamsAtOnceAndWaitsInTime(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var streams []*events
	for i := range 5 {
		for name, over := range bindings {
			stream := openStream(t, over, b, "SendStreamingMessage", say(name+string(rune('a'+i)), "wait"))
			stream.read(t)
			streams = append(streams, stream)
		}
	}
	var waits sync.WaitGroup
	refused := make([]*failed, 3)
	for i, over := range []binding{overGRPC{}, overREST{}, overJSONRPC{}} {
		waits.Go(func() { refused[i] = over.call(t.Context(), b, "SendMessage", say(string(rune('p'+i)), "wait")).failed })
	}
	waitForTasks(t, b, 18)

	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- b.gateway.Stop(ctx) }()
	for _, s := range streams {
		response, _, err := s.next()
		require.Nil(t, response.GetPayload(), "no event is made up")
		if code := grpcstatus.Code(err); code != codes.Unavailable {
			require.ErrorIs(t, err, io.EOF)
		}
	}
	require.Less(t, time.Since(begin), 4*time.Second, "streams don't wait for waits")
	require.NoError(t, <-stopped)
	require.Less(t, time.Since(begin), 8*time.Second)
	require.Error(t, b.gateway.Ready())
	waits.Wait()
	for _, f := range refused {
		require.NotNil(t, f)
		require.Equal(t, a2aerr.ReasonUnavailable, f.reason)
	}
}

func TestStoppingLetsATaskThatIsAboutToEndAnswerItsSender(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ids := make(chan string, 1)
	b.store.queued = func(id, _ string) { ids <- id }
	answered := make(chan outcome, 1)
	go func() { answered <- overREST{}.call(t.Context(), b, "SendMessage", say("m1", "wait")) }()
	id := <-ids
	waitForTasks(t, b, 1)
	stopped := make(chan error, 1)
	go func() { stopped <- b.gateway.Stop(context.WithoutCancel(t.Context())) }()
	require.Eventually(t, func() bool { return b.gateway.Ready() != nil }, 10*time.Second, time.Millisecond)
	b.store.emit(id, status(task.Working, ""), status(task.Completed, ""))
	require.Equal(t, task.Completed, (<-answered).task(t).GetStatus().GetState())
	require.NoError(t, <-stopped)
}

func TestReadinessComparesTheAgentsFile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	require.Eventually(t, func() bool { return b.gateway.Ready() == nil }, 10*time.Second, 5*time.Millisecond)
	b.store.mu.Lock()
	b.store.version = "another"
	b.store.mu.Unlock()
	require.ErrorContains(t, b.gateway.Ready(), "agents file")
}

func TestStartFailsWhenAnAddressIsTaken(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	agents, err := config.Parse([]byte(defaultAgents))
	require.NoError(t, err)
	inner := serveInMemory(t, agents.Limits, newMemory(), nil)
	second, err := gateway.New(t.Context(), gateway.Config{
		Logger: testkit.Logger(t), Telemetry: telemetry.Disabled(), HTTP: b.gateway.HTTPAddr(), GRPC: "127.0.0.1:0",
		Agents: agents, Authenticator: auth.Anonymous{}, TaskStore: inner, Notifier: inner,
	})
	require.NoError(t, err)
	require.ErrorContains(t, second.Start(t.Context()), "listen for HTTP")
	require.Empty(t, second.HTTPAddr())
	require.NoError(t, second.Stop(t.Context()))
}

func TestLifecycle(t *testing.T) {
	t.Parallel()
	agents, err := config.Parse([]byte(defaultAgents))
	require.NoError(t, err)
	inner := serveInMemory(t, agents.Limits, newMemory(), &notices{})
	lifecycletest.Stress(t, func(t *testing.T) lifecycle.Service {
		t.Helper()
		service, err := gateway.New(t.Context(), gateway.Config{
			Logger: testkit.Logger(t), Telemetry: telemetry.Disabled(), HTTP: "127.0.0.1:0", GRPC: "127.0.0.1:0", Agents: agents,
			Authenticator: auth.Anonymous{}, TaskStore: inner, Notifier: inner,
		})
		require.NoError(t, err)
		return service
	})
}

// A load balancer needs a moment to see that a gateway leaves, in which it still
// sends requests there.
func TestAGatewayThatLeavesSaysSoFirstAndServesOnForAMoment(t *testing.T) {
	t.Parallel()
	const moment = 3 * time.Second
	b := newBench(t, func(c *gateway.Config) { c.Linger = moment })
	scripted(b.store)
	var streams []*events
	for name, over := range bindings {
		stream := openStream(t, over, b, "SendStreamingMessage", say(name, "wait"))
		stream.read(t)
		streams = append(streams, stream)
	}
	require.Eventually(t, func() bool { return b.gateway.Ready() == nil }, 10*time.Second, time.Millisecond)
	health := healthv1.NewHealthClient(b.grpc)
	answer, err := health.Check(t.Context(), &healthv1.HealthCheckRequest{})
	require.NoError(t, err)
	require.Equal(t, healthv1.HealthCheckResponse_SERVING, answer.GetStatus())

	begun := time.Now()
	stopped := make(chan error, 1)
	go func() { stopped <- b.gateway.Stop(context.Background()) }()
	require.Eventually(t, func() bool { return b.gateway.Ready() != nil }, moment, time.Millisecond)
	answer, err = health.Check(t.Context(), &healthv1.HealthCheckRequest{})
	require.NoError(t, err)
	require.Equal(t, healthv1.HealthCheckResponse_NOT_SERVING, answer.GetStatus())
	for name, over := range bindings {
		require.Equal(t, task.Completed, over.call(t.Context(), b, "SendMessage", say("late"+name, "x")).task(t).GetStatus().GetState())
		openStream(t, over, b, "SendStreamingMessage", say("later"+name, "wait")).read(t)
	}
	for _, s := range streams {
		response, _, err := s.next()
		require.Nil(t, response.GetPayload())
		if code := grpcstatus.Code(err); code != codes.Unavailable {
			require.ErrorIs(t, err, io.EOF)
		}
	}
	require.NoError(t, <-stopped)
	require.GreaterOrEqual(t, time.Since(begun), moment)
}
