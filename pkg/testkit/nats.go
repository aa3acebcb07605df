package testkit

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/natsconn"
	"github.com/errandhq/errand/pkg/natsconn/embedded"
)

// NATS returns a connection to a NATS server with JetStream of the test's own.
func NATS(t testing.TB) *nats.Conn {
	t.Helper()
	return NewNATSServer(t).Connect()
}

// NATSServer is a NATS server that a test can stop and start again; the streams
// stay.
type NATSServer struct {
	t   testing.TB
	dir string

	mu  sync.Mutex
	srv *embedded.Server
}

// NewNATSServer starts a server that ends with the test.
func NewNATSServer(t testing.TB) *NATSServer {
	t.Helper()
	s := &NATSServer{t: t, dir: t.TempDir()}
	s.Start()
	t.Cleanup(s.Stop)
	return s
}

// Start starts the server after a Stop, on the same data.
func (s *NATSServer) Start() {
	s.t.Helper()
	srv := embedded.New(embedded.Config{DataDir: s.dir, Logger: Logger(s.t)})
	require.NoError(s.t, srv.Start(context.Background()), "start NATS")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.srv = srv
}

// Stop stops the server; connections stay and try to reconnect.
func (s *NATSServer) Stop() {
	s.t.Helper()
	require.NoError(s.t, s.server().Stop(context.Background()), "stop NATS")
}

// settlePatience is for what a connection asked for last.
const settlePatience = 10 * time.Second

// Connect returns a new connection, which is closed when the test ends.
//
// It is closed once the server has read what it was asked for, so that it does that
// before it stops.
func (s *NATSServer) Connect() *nats.Conn {
	s.t.Helper()
	nc, err := natsconn.Connect(s.t.Context(), natsconn.Config{InProcess: s, Name: s.t.Name(), Logger: Logger(s.t)})
	require.NoError(s.t, err)
	s.t.Cleanup(func() {
		if nc.IsConnected() {
			_ = nc.FlushTimeout(settlePatience) // it ends when the server has read all before
		}
		nc.Close()
	})
	return nc
}

// InProcessConn lets a connection find the server that is running now.
func (s *NATSServer) InProcessConn() (net.Conn, error) {
	return s.server().InProcessConn()
}

func (s *NATSServer) server() *embedded.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.srv
}
