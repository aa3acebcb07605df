package testkit

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/errandhq/errand/pkg/rpc"
	"github.com/errandhq/errand/pkg/telemetry"
)

// grpcGrace is what calls may still take when the test is over.
const grpcGrace = 5 * time.Second

// GRPC starts a server with the services that register adds, and returns a
// connection to it. Both end with the test, and no port is used.
func GRPC(t testing.TB, register func(grpc.ServiceRegistrar)) *grpc.ClientConn {
	t.Helper()
	memory := rpc.NewInMemory()
	server, err := rpc.NewServer(rpc.ServerConfig{
		Listeners: []net.Listener{memory.Listener()}, Telemetry: telemetry.Disabled(), Logger: Logger(t),
	})
	require.NoError(t, err)
	register(server.Registrar())
	require.NoError(t, server.Start(t.Context()))
	conn, err := rpc.Dial(rpc.ClientConfig{InMemory: memory, Telemetry: telemetry.Disabled()})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, conn.Close())
		ctx, cancel := context.WithTimeout(context.Background(), grpcGrace)
		defer cancel()
		require.NoError(t, server.Stop(ctx), "a call did not end with the test")
	})
	return conn
}
