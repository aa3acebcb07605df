package rpc_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testv1 "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/rpc"
)

// requireBusy wants a refusal that says when to come again.
func requireBusy(t *testing.T, err error) {
	t.Helper()
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.Equal(t, a2aerr.ReasonUnavailable, a2aerr.From(err).Reason)
	require.Positive(t, a2aerr.From(err).RetryAfter())
}

func TestCallsOverTheBoundAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	running, gate := make(chan struct{}), make(chan struct{})
	hold := func() {
		running <- struct{}{}
		<-gate
	}
	_, client := serve(t, service{
		unary:  func(context.Context) error { hold(); return nil },
		stream: func(testv1.TestService_FullDuplexCallServer) error { hold(); return nil },
	}, rpc.ServerConfig{MaxCalls: 2})
	ctx := within(t)
	done := make(chan error, 2)
	for range 2 {
		go func() { _, err := client.EmptyCall(ctx, &testv1.Empty{}); done <- err }()
		<-running
	}
	_, err := client.EmptyCall(ctx, &testv1.Empty{})
	requireBusy(t, err)

	// Another method has a bound of its own.
	_, err = client.UnaryCall(ctx, &testv1.SimpleRequest{})
	require.NoError(t, err)
	var streams []grpc.BidiStreamingClient[testv1.StreamingOutputCallRequest, testv1.StreamingOutputCallResponse]
	for range 3 {
		stream, err := client.FullDuplexCall(ctx)
		require.NoError(t, err)
		streams = append(streams, stream)
		if len(streams) < 3 {
			<-running
		}
	}
	_, err = streams[2].Recv()
	requireBusy(t, err)

	close(gate)
	require.NoError(t, <-done)
	require.NoError(t, <-done)
	go func() { <-running }()
	_, err = client.EmptyCall(ctx, &testv1.Empty{})
	require.NoError(t, err, "a call that has ended makes room")
}

func TestUnaryCallsHaveADeadline(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	_, client := serve(t, service{unary: func(ctx context.Context) error {
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil
	}}, rpc.ServerConfig{MaxCallTime: 50 * time.Millisecond})
	_, err := client.EmptyCall(within(t), &testv1.Empty{})
	require.NoError(t, err)
	require.ErrorIs(t, <-ended, context.DeadlineExceeded)
}
