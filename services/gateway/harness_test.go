package gateway_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	notifierv1 "github.com/errandhq/errand/proto/gen/errand/notifier/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"

	"github.com/errandhq/errand/pkg/auth"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/rpc"
	"github.com/errandhq/errand/pkg/telemetry"
	"github.com/errandhq/errand/pkg/testkit"
	"github.com/errandhq/errand/services/gateway"
	"github.com/errandhq/errand/services/internal/link"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// defaultAgents is an agents file with one agent of each kind.
const defaultAgents = `
limits: {wait: 10s, keep_alive: 100ms, body: 100000, depth: 20, values: 1000}
agents:
- name: echo
  default: true
  card: &card
    name: Echo
    description: Says it again
    version: 1.2.3
    defaultInputModes: [text/plain]
    defaultOutputModes: [text/plain]
    skills: [{id: echo, name: Echo, description: Echoes., tags: [test]}]
- name: quiet
  card: {<<: *card, capabilities: {streaming: false}}
- name: strict
  card: {<<: *card, capabilities: {extensions: [{uri: "https://x.test/a", required: true}, {uri: "https://x.test/b"}]}}
- name: repeat
  dedupe: "off"
  input_modes: "off"
  error_profile: 1.0.0
  card: *card
- name: direct
  lifecycle: message
  card: *card
- name: either
  lifecycle: hybrid
  skills: [{id: echo, task_when: []}]
  card: *card
- name: busy
  follow_ups: refuse
  card: *card
`

// bench is a gateway with everything around it.
type bench struct {
	t       *testing.T
	gateway *gateway.Service
	store   *memory
	base    string // URL of the root
	grpc    *grpc.ClientConn
	http    *http.Client
}

type option func(*gateway.Config)

func withAgents(file string) option {
	return func(c *gateway.Config) {
		agents, err := config.Parse([]byte(file))
		if err != nil {
			panic(err)
		}
		c.Agents = agents
	}
}

func withNATS(nc *nats.Conn) option { return func(c *gateway.Config) { c.NATS = nc } }

func withAuthenticator(a auth.Authenticator) option {
	return func(c *gateway.Config) { c.Authenticator = a }
}

func newBench(t *testing.T, options ...option) *bench {
	t.Helper()
	return newBenchWith(t, &notices{}, options...)
}

// newBenchWith has a notifier of the test's own; nil for one that can't be reached.
func newBenchWith(t *testing.T, notifier *notices, options ...option) *bench {
	t.Helper()
	store := newMemory()
	b := &bench{t: t, store: store, http: &http.Client{Transport: &http.Transport{}}}
	cfg := gateway.Config{
		Logger: testkit.Logger(t), Telemetry: telemetry.Disabled(), HTTP: "127.0.0.1:0", GRPC: "127.0.0.1:0",
		Authenticator: auth.Anonymous{},
	}
	withAgents(defaultAgents)(&cfg)
	for _, o := range options {
		o(&cfg)
	}
	inner := serveInMemory(t, cfg.Agents.Limits, store, notifier)
	cfg.TaskStore, cfg.Notifier = inner, inner
	store.version = cfg.Agents.Version
	b.start(cfg)
	return b
}

func (b *bench) start(cfg gateway.Config) {
	b.t.Helper()
	service, err := gateway.New(b.t.Context(), cfg)
	require.NoError(b.t, err)
	require.NoError(b.t, service.Start(b.t.Context()))
	b.gateway, b.base = service, "http://"+service.HTTPAddr()
	b.grpc, err = grpc.NewClient(service.GRPCAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(b.t, err)
	b.t.Cleanup(func() {
		b.http.CloseIdleConnections()
		require.NoError(b.t, b.grpc.Close())
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		require.NoError(b.t, service.Stop(ctx))
	})
}

// serveInMemory returns a connection, as services have it, to a task store and a
// notifier; a nil one can't be reached.
func serveInMemory(t *testing.T, limits config.Limits, store *memory, notifier *notices) *grpc.ClientConn {
	t.Helper()
	wire := rpc.NewInMemory()
	server := grpc.NewServer(grpc.MaxRecvMsgSize(16<<20), grpc.UnaryInterceptor(store.silence.unary),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}))
	taskstorev1.RegisterTaskStoreServiceServer(server, store)
	if notifier != nil {
		notifier.store = store
		notifierv1.RegisterNotifierServiceServer(server, notifier)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(wire.Listener()) }()
	conn, err := link.TaskStore("", wire, limits, telemetry.Disabled())
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, conn.Close())
		server.Stop()
		require.NoError(t, <-done)
	})
	return conn
}
