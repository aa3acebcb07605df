package gateway_test

import (
	"context"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	notifierv1 "github.com/errandhq/errand/proto/gen/errand/notifier/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/auth"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/lifecycle/lifecycletest"
	"github.com/errandhq/errand/pkg/telemetry"
	"github.com/errandhq/errand/pkg/testkit"
	"github.com/errandhq/errand/services/gateway"
)

type panicking struct{}

func (panicking) Authenticate(context.Context, auth.Metadata) (auth.Identity, error) {
	panic("secret")
}

func TestStoppingEndsStreamsAndWaitsAtOnce(t *testing.T) {
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
	require.NoError(t, b.gateway.Stop(ctx))
	require.Less(t, time.Since(begin), 5*time.Second)
	require.Error(t, b.gateway.Ready())
	waits.Wait()
	for _, f := range refused {
		require.NotNil(t, f)
		require.Equal(t, a2aerr.ReasonUnavailable, f.reason)
	}
	for _, s := range streams {
		response, _, err := s.next()
		require.Nil(t, response.GetPayload(), "no event is made up")
		if code := grpcstatus.Code(err); code != codes.Unavailable {
			require.ErrorIs(t, err, io.EOF)
		}
	}
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
	inner := serveInMemory(t, func(*grpc.Server) {})
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
	store := newMemory()
	inner := serveInMemory(t, func(s *grpc.Server) {
		taskstorev1.RegisterTaskStoreServiceServer(s, store)
		notifierv1.RegisterNotifierServiceServer(s, &notices{store: store})
	})
	agents, err := config.Parse([]byte(defaultAgents))
	require.NoError(t, err)
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
