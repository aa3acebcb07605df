package rpc_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	testv1 "google.golang.org/grpc/interop/grpc_testing"

	"github.com/errandhq/errand/pkg/rpc"
)

// counted is a server on a port that counts its calls.
type counted struct {
	*rpc.Server

	calls atomic.Int64
}

func startCounted(t *testing.T) *counted {
	t.Helper()
	c := &counted{}
	c.Server = newServer(t, service{unary: func(context.Context) error {
		c.calls.Add(1)
		return nil
	}}, rpc.ServerConfig{Addr: "127.0.0.1:0"})
	require.NoError(t, c.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, c.Stop(context.Background())) })
	return c
}

func TestServersOfAListTakeTurns(t *testing.T) {
	t.Parallel()
	first, second := startCounted(t), startCounted(t)
	client := testv1.NewTestServiceClient(dial(t, rpc.ClientConfig{Target: first.Addr() + ", " + second.Addr()}))
	require.Eventually(t, func() bool {
		_, err := client.EmptyCall(within(t), &testv1.Empty{})
		require.NoError(t, err)
		return first.calls.Load() > 0 && second.calls.Load() > 0
	}, patience, time.Millisecond)
}

func TestCallsPassOverAServerOfAListThatHasGone(t *testing.T) {
	t.Parallel()
	first, second := startCounted(t), startCounted(t)
	client := testv1.NewTestServiceClient(dial(t, rpc.ClientConfig{Target: first.Addr() + "," + second.Addr()}))
	for i := range 100 {
		if i == 50 {
			require.NoError(t, first.Stop(t.Context()))
		}
		_, err := client.EmptyCall(within(t), &testv1.Empty{})
		require.NoError(t, err, "call %d", i)
	}
	require.Equal(t, int64(100), first.calls.Load()+second.calls.Load(), "each call came to one server once")
}
