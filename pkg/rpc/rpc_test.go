package rpc_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	testv1 "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/lifecycle/lifecycletest"
	"github.com/errandhq/errand/pkg/rpc"
	"github.com/errandhq/errand/pkg/telemetry"
)

const patience = 30 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service answers as its functions say.
type service struct {
	testv1.UnimplementedTestServiceServer
	unary  func(ctx context.Context) error
	stream func(stream testv1.TestService_FullDuplexCallServer) error
}

func (s service) EmptyCall(ctx context.Context, _ *testv1.Empty) (*testv1.Empty, error) {
	if s.unary == nil {
		return &testv1.Empty{}, nil
	}
	return &testv1.Empty{}, s.unary(ctx)
}

func (s service) UnaryCall(_ context.Context, req *testv1.SimpleRequest) (*testv1.SimpleResponse, error) {
	return &testv1.SimpleResponse{Payload: req.GetPayload()}, nil
}

func (s service) FullDuplexCall(stream testv1.TestService_FullDuplexCallServer) error {
	return s.stream(stream)
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func newServer(t *testing.T, s service, cfg rpc.ServerConfig) *rpc.Server {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Telemetry = telemetry.Disabled()
	server, err := rpc.NewServer(cfg)
	require.NoError(t, err)
	testv1.RegisterTestServiceServer(server.Registrar(), s)
	return server
}

func serve(t *testing.T, s service, cfg rpc.ServerConfig) (*rpc.Server, testv1.TestServiceClient) {
	t.Helper()
	memory := rpc.NewInMemory()
	cfg.Listeners = []net.Listener{memory.Listener()}
	server := newServer(t, s, cfg)
	require.NoError(t, server.Start(t.Context()))
	conn := dial(t, rpc.ClientConfig{InMemory: memory})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		// Some tests leave calls running on purpose.
		_ = server.Stop(ctx)
	})
	return server, testv1.NewTestServiceClient(conn)
}

func dial(t *testing.T, cfg rpc.ClientConfig) *grpc.ClientConn {
	t.Helper()
	cfg.Telemetry = telemetry.Disabled()
	conn, err := rpc.Dial(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestServerKeepsTheServiceContract(t *testing.T) {
	t.Parallel()
	lifecycletest.Stress(t, func(t *testing.T) lifecycle.Service {
		return newServer(t, service{}, rpc.ServerConfig{Addr: "127.0.0.1:0"})
	})
}

func TestAPanicIsAnInternalErrorOfThatCallAlone(t *testing.T) {
	t.Parallel()
	var log syncBuffer
	panicking := atomic.Bool{}
	panicking.Store(true)
	_, client := serve(t, service{
		unary: func(context.Context) error {
			if panicking.Load() {
				panic("secret")
			}
			return nil
		},
		stream: func(testv1.TestService_FullDuplexCallServer) error { panic("secret") },
	}, rpc.ServerConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))})

	_, err := client.EmptyCall(within(t), &testv1.Empty{})
	require.Equal(t, codes.Internal, status.Code(err))
	require.NotContains(t, err.Error(), "secret")
	stream, err := client.FullDuplexCall(within(t))
	require.NoError(t, err)
	_, err = stream.Recv()
	require.Equal(t, codes.Internal, status.Code(err))
	require.Equal(t, 2, strings.Count(log.String(), "panic in a gRPC call"))
	require.Contains(t, log.String(), "secret")

	panicking.Store(false)
	_, err = client.EmptyCall(within(t), &testv1.Empty{})
	require.NoError(t, err)
}

func TestAFailureIsLoggedOnceByItsGravity(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err   error
		level string
	}{
		"ours":           {status.Error(codes.Internal, "broken"), "ERROR"},
		"not a status":   {io.ErrUnexpectedEOF, "ERROR"},
		"for now":        {status.Error(codes.Unavailable, "later"), "WARN"},
		"the sender's":   {status.Error(codes.InvalidArgument, "message.parts"), "DEBUG"},
		"gone away":      {context.Canceled, "DEBUG"},
		"none at all":    {nil, ""},
		"does not exist": {status.Error(codes.NotFound, "task"), "DEBUG"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log syncBuffer
			_, client := serve(t, service{unary: func(context.Context) error { return tt.err }}, rpc.ServerConfig{
				Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			})
			_, err := client.EmptyCall(within(t), &testv1.Empty{})
			if tt.err == nil {
				require.NoError(t, err)
				require.Empty(t, log.String())
				return
			}
			require.Error(t, err)
			require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
			require.Contains(t, log.String(), "level="+tt.level)
			require.Contains(t, log.String(), "method=/grpc.testing.TestService/EmptyCall")
		})
	}
}

func TestInterceptorsRunInTheirOrderForBothKindsOfCalls(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var order []string
	note := func(name string) rpc.Interceptor {
		write := func() {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, name)
		}
		return rpc.Interceptor{
			Name: name,
			Unary: func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
				write()
				return next(ctx, req)
			},
			Stream: func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
				write()
				return next(srv, stream)
			},
		}
	}
	_, client := serve(t, service{stream: func(testv1.TestService_FullDuplexCallServer) error { return nil }},
		rpc.ServerConfig{Interceptors: []rpc.Interceptor{note("first"), note("second")}})
	_, err := client.EmptyCall(within(t), &testv1.Empty{})
	require.NoError(t, err)
	stream, err := client.FullDuplexCall(within(t))
	require.NoError(t, err)
	_, err = stream.Recv()
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, []string{"first", "second", "first", "second"}, order)
}

func TestAnInterceptorOfOneKindIsRefused(t *testing.T) {
	t.Parallel()
	unary := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		return next(ctx, req)
	}
	stream := func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		return next(srv, s)
	}
	for name, interceptor := range map[string]rpc.Interceptor{
		"only unary":   {Name: "auth", Unary: unary},
		"only streams": {Name: "auth", Stream: stream},
		"no name":      {Unary: unary, Stream: stream},
		"a taken name": {Name: "recovery", Unary: unary, Stream: stream},
	} {
		_, err := rpc.NewServer(rpc.ServerConfig{
			Interceptors: []rpc.Interceptor{interceptor}, Telemetry: telemetry.Disabled(), Logger: slog.New(slog.DiscardHandler),
		})
		require.Error(t, err, name)
	}
}

func TestMessagesAreBoundedOnBothSides(t *testing.T) {
	t.Parallel()
	memory := rpc.NewInMemory()
	server := newServer(t, service{}, rpc.ServerConfig{
		Listeners: []net.Listener{memory.Listener()}, MaxRecvBytes: 6 << 20, MaxSendBytes: 6 << 20,
	})
	require.NoError(t, server.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, server.Stop(context.Background())) })
	client := testv1.NewTestServiceClient(dial(t, rpc.ClientConfig{InMemory: memory, MaxRecvBytes: 6 << 20, MaxSendBytes: 8 << 20}))
	call := func(size int) error {
		_, err := client.UnaryCall(within(t), &testv1.SimpleRequest{Payload: &testv1.Payload{Body: make([]byte, size)}})
		return err
	}
	require.NoError(t, call(5<<20), "above gRPC's default of 4 MiB")
	require.Equal(t, codes.ResourceExhausted, status.Code(call(7<<20)), "refused by the server")
	require.Equal(t, codes.ResourceExhausted, status.Code(call(9<<20)), "refused before it is sent")
}

func TestStopWaitsForCallsInHandAndTakesNoMore(t *testing.T) {
	t.Parallel()
	release, entered := make(chan struct{}), make(chan struct{})
	server, client := serve(t, service{unary: func(context.Context) error {
		close(entered)
		<-release
		return nil
	}}, rpc.ServerConfig{})
	result := make(chan error, 1)
	go func() {
		_, err := client.EmptyCall(within(t), &testv1.Empty{})
		result <- err
	}()
	<-entered
	stopped := make(chan error, 1)
	go func() { stopped <- server.Stop(within(t)) }()
	require.Eventually(t, func() bool { return server.Ready() != nil }, patience, time.Millisecond)
	require.Empty(t, stopped)
	close(release)
	require.NoError(t, <-result)
	require.NoError(t, <-stopped)
	_, err := client.EmptyCall(within(t), &testv1.Empty{})
	require.Equal(t, codes.Unavailable, status.Code(err))
}

func TestStopCutsStreamsThatNeverEnd(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	server, client := serve(t, service{stream: func(stream testv1.TestService_FullDuplexCallServer) error {
		defer close(ended)
		if err := stream.Send(&testv1.StreamingOutputCallResponse{}); err != nil {
			return err
		}
		<-stream.Context().Done()
		return stream.Context().Err()
	}}, rpc.ServerConfig{})
	stream, err := client.FullDuplexCall(within(t))
	require.NoError(t, err)
	_, err = stream.Recv()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, server.Stop(ctx), context.DeadlineExceeded)
	_, err = stream.Recv()
	require.Error(t, err)
	<-ended
}

func TestHealthFollowsTheServersLife(t *testing.T) {
	t.Parallel()
	memory := rpc.NewInMemory()
	server := newServer(t, service{}, rpc.ServerConfig{Listeners: []net.Listener{memory.Listener()}})
	require.NoError(t, server.Start(t.Context()))
	client := healthv1.NewHealthClient(dial(t, rpc.ClientConfig{InMemory: memory}))
	watch, err := client.Watch(within(t), &healthv1.HealthCheckRequest{})
	require.NoError(t, err)
	update, err := watch.Recv()
	require.NoError(t, err)
	require.Equal(t, healthv1.HealthCheckResponse_SERVING, update.GetStatus())
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	go func() { _ = server.Stop(ctx) }()
	update, err = watch.Recv()
	require.NoError(t, err)
	require.Equal(t, healthv1.HealthCheckResponse_NOT_SERVING, update.GetStatus())
}

func TestAClientThatPingsOftenIsNotSentAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		memory := rpc.NewInMemory()
		server := newServer(t, service{stream: func(stream testv1.TestService_FullDuplexCallServer) error {
			_, err := stream.Recv()
			return err
		}}, rpc.ServerConfig{Listeners: []net.Listener{memory.Listener()}})
		require.NoError(t, server.Start(t.Context()))
		conn, err := grpc.NewClient("passthrough:///in-memory",
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return memory.Dial(ctx) }),
			// No gRPC client may ping more often.
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: time.Second, PermitWithoutStream: true}))
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		stream, err := testv1.NewTestServiceClient(conn).FullDuplexCall(ctx)
		require.NoError(t, err)
		_, err = stream.Recv()
		require.Equal(t, codes.DeadlineExceeded, status.Code(err), "the stream lasts as long as the client wants")
		require.NoError(t, conn.Close())
		require.NoError(t, server.Stop(t.Context()))
	})
}

func TestOnlyRetrySafeCallsAreTriedAgain(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	memory := rpc.NewInMemory()
	server := newServer(t, service{unary: func(context.Context) error {
		if calls.Add(1) < 3 {
			return status.Error(codes.Unavailable, "starting")
		}
		return nil
	}}, rpc.ServerConfig{Listeners: []net.Listener{memory.Listener()}})
	require.NoError(t, server.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, server.Stop(context.Background())) })

	plain := testv1.NewTestServiceClient(dial(t, rpc.ClientConfig{InMemory: memory}))
	_, err := plain.EmptyCall(within(t), &testv1.Empty{})
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.Equal(t, int32(1), calls.Load())

	calls.Store(0)
	safe := testv1.NewTestServiceClient(dial(t, rpc.ClientConfig{
		InMemory: memory, RetrySafe: []string{"grpc.testing.TestService/EmptyCall"},
	}))
	_, err = safe.EmptyCall(within(t), &testv1.Empty{})
	require.NoError(t, err)
	require.Equal(t, int32(3), calls.Load())
}

func TestAClientFindsAServerThatComesBack(t *testing.T) {
	t.Parallel()
	first := newServer(t, service{}, rpc.ServerConfig{Addr: "127.0.0.1:0"})
	require.NoError(t, first.Start(t.Context()))
	client := testv1.NewTestServiceClient(dial(t, rpc.ClientConfig{Target: first.Addr()}))
	_, err := client.EmptyCall(within(t), &testv1.Empty{})
	require.NoError(t, err)
	require.NoError(t, first.Stop(within(t)))
	_, err = client.EmptyCall(within(t), &testv1.Empty{})
	require.Equal(t, codes.Unavailable, status.Code(err))

	second := newServer(t, service{}, rpc.ServerConfig{Addr: first.Addr()})
	require.NoError(t, second.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, second.Stop(context.Background())) })
	_, err = client.EmptyCall(within(t), &testv1.Empty{}, grpc.WaitForReady(true))
	require.NoError(t, err)
}

func TestTheTraceGoesWithTheCall(t *testing.T) {
	t.Parallel()
	traces := make(chan string, 1)
	_, client := serve(t, service{unary: func(ctx context.Context) error {
		traces <- trace.SpanContextFromContext(ctx).TraceID().String()
		return nil
	}}, rpc.ServerConfig{})
	ctx := propagation.TraceContext{}.Extract(within(t), propagation.MapCarrier{
		"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	})
	_, err := client.EmptyCall(ctx, &testv1.Empty{})
	require.NoError(t, err)
	require.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", <-traces)
}

func TestStartSaysWhenTheAddressIsTaken(t *testing.T) {
	t.Parallel()
	first := newServer(t, service{}, rpc.ServerConfig{Addr: "127.0.0.1:0"})
	require.NoError(t, first.Start(t.Context()))
	second := newServer(t, service{}, rpc.ServerConfig{Addr: first.Addr()})
	require.ErrorContains(t, second.Start(t.Context()), "listen for gRPC")
	require.NoError(t, second.Stop(within(t)))
	require.NoError(t, first.Stop(within(t)))
}

func TestAServerWhoseListenerFailsEndsByItself(t *testing.T) {
	t.Parallel()
	memory := rpc.NewInMemory()
	server := newServer(t, service{}, rpc.ServerConfig{Listeners: []net.Listener{memory.Listener()}})
	require.NoError(t, server.Start(t.Context()))
	require.NoError(t, memory.Listener().Close())
	<-server.Done()
	require.Error(t, server.Err())
	require.Error(t, server.Ready())
	require.NoError(t, server.Stop(within(t)))
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
