package rpc_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	testv1 "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/errandhq/errand/pkg/rpc"
)

// besideADeafServer is a client of two servers, of which one takes calls and gives
// no answer, as a process that was stopped does.
func besideADeafServer(t *testing.T, limit time.Duration) (testv1.TestServiceClient, *counted) {
	t.Helper()
	good := startCounted(t)
	hung := startCounted(t)
	way := newHole(t, hung.Addr())
	client := testv1.NewTestServiceClient(dial(t, rpc.ClientConfig{
		Target: way.addr + "," + good.Addr(), MaxCallTime: limit, RetrySafe: []string{"grpc.testing.TestService/EmptyCall"},
	}))
	// Both are in use before one becomes silent.
	require.Eventually(t, func() bool {
		_, err := client.EmptyCall(within(t), &testv1.Empty{})
		require.NoError(t, err)
		return hung.calls.Load() > 0 && good.calls.Load() > 0
	}, patience, time.Millisecond)
	way.silent.Store(true)
	return client, good
}

// hole leads to a server until it swallows what is sent.
type hole struct {
	addr   string
	silent atomic.Bool
}

func newHole(t *testing.T, target string) *hole {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	h := &hole{addr: listener.Addr().String()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		client, err := listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", target)
		if err != nil {
			_ = client.Close()
			return
		}
		back := make(chan struct{})
		go func() { defer close(back); h.pump(server, client) }()
		h.pump(client, server)
		<-back
	}()
	t.Cleanup(func() { _ = listener.Close(); <-done })
	return h
}

func (h *hole) pump(from, to net.Conn) {
	defer func() { _, _ = from.Close(), to.Close() }()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if h.silent.Load() {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func TestACallThatIsNotAnsweredGoesToTheOtherServer(t *testing.T) {
	t.Parallel()
	client, good := besideADeafServer(t, time.Second)
	before := good.calls.Load()
	for range 6 {
		begun := time.Now()
		_, err := client.EmptyCall(within(t), &testv1.Empty{})
		require.NoError(t, err)
		require.Less(t, time.Since(begun), 5*time.Second)
	}
	require.Equal(t, before+6, good.calls.Load())
}

func TestACallThatMayNotComeTwiceEndsInTime(t *testing.T) {
	t.Parallel()
	client, _ := besideADeafServer(t, 300*time.Millisecond)
	var failed int
	for range 4 { // every other one reaches the server that is silent
		_, err := client.UnaryCall(within(t), &testv1.SimpleRequest{})
		if err != nil {
			requireBusy(t, err)
			failed++
		}
	}
	require.Positive(t, failed)
	require.Less(t, failed, 4)
}

func TestADeadlineOfTheCallerIsNoFaultOfTheServer(t *testing.T) {
	t.Parallel()
	hold := func(ctx context.Context) error { <-ctx.Done(); return nil }
	server := newServer(t, service{unary: hold}, rpc.ServerConfig{Addr: "127.0.0.1:0"})
	require.NoError(t, server.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, server.Stop(context.Background())) })
	client := testv1.NewTestServiceClient(dial(t, rpc.ClientConfig{Target: server.Addr(), MaxCallTime: time.Minute}))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := client.EmptyCall(ctx, &testv1.Empty{})
	require.Equal(t, codes.DeadlineExceeded, status.Code(err))
}

// Who looks at its context after a call that took too long finds it ended, however
// exactly the clocks of both sides agree.
func TestAContextHasEndedWhenItsCallWasTooLong(t *testing.T) {
	t.Parallel()
	hold := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	server := newServer(t, service{unary: hold}, rpc.ServerConfig{Addr: "127.0.0.1:0"})
	require.NoError(t, server.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, server.Stop(context.Background())) })
	client := testv1.NewTestServiceClient(dial(t, rpc.ClientConfig{
		Target: server.Addr(), MaxCallTime: time.Minute, RetrySafe: []string{"grpc.testing.TestService"},
	}))
	for range 100 {
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Millisecond)
		_, err := client.EmptyCall(ctx, &testv1.Empty{})
		require.Equal(t, codes.DeadlineExceeded, status.Code(err), "%v", err)
		require.Error(t, ctx.Err())
		cancel()
	}
}
