package harness

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/telemetry"
	"github.com/errandhq/errand/pkg/testkit"
	"github.com/errandhq/errand/services/allinone"
	"github.com/errandhq/errand/services/e2e/internal/binding"
)

// Engine is the database under a cluster.
type Engine string

// The two engines.
const (
	SQLite   Engine = "sqlite"
	Postgres Engine = "postgres"
)

// loopback is an address with a free port.
const loopback = "127.0.0.1:0"

// LogVariable names a file that gets everything that clusters log.
const LogVariable = "ERRAND_E2E_LOG"

// Options say what cluster a test wants.
type Options struct {
	Engine Engine
	// AgentsFile is the contents of the agents file.
	AgentsFile []byte
	// Agents is the code behind it. An agent of the file without code is one that
	// no executor has.
	Agents []agent.Agent
	// DatabaseURL is that of an empty database on Postgres, which a test reaches in
	// its own way; empty for one of the cluster's own.
	DatabaseURL string
	// Beside is a cluster on Postgres with which this one shares database and
	// NATS server, as two nodes do. It must outlive this one.
	Beside *Cluster
}

// Cluster is a running cluster in the test's process.
type Cluster struct {
	Client *binding.Client
	// HTTP and GRPC are the public addresses, host:port.
	HTTP, GRPC string

	options     Options
	dataDir     string
	databaseURL string
	logger      *slog.Logger
	server      *allinone.Service
}

// Start starts a cluster on loopback ports of its own and waits until it is
// ready. It ends with the test.
func Start(t testing.TB, options Options) *Cluster {
	t.Helper()
	c := &Cluster{options: options, dataDir: t.TempDir(), logger: newLogger(t)}
	switch {
	case options.DatabaseURL != "":
		c.databaseURL = options.DatabaseURL
	case options.Beside != nil:
		c.databaseURL = options.Beside.databaseURL
	case options.Engine == Postgres:
		c.databaseURL = testkit.Postgres(t)
	}
	c.launch(t, loopback, loopback)
	client, err := binding.NewClient("http://"+c.server.HTTPAddr(), c.server.GRPCAddr())
	require.NoError(t, err)
	c.Client, c.HTTP, c.GRPC = client, c.server.HTTPAddr(), c.server.GRPCAddr()
	t.Cleanup(func() {
		require.NoError(t, client.Close())
		c.Stop(t)
	})
	return c
}

// Restart stops the cluster and starts it again on the same data and addresses.
func (c *Cluster) Restart(t testing.TB) {
	t.Helper()
	web, rpc := c.server.HTTPAddr(), c.server.GRPCAddr()
	c.Stop(t)
	// What the client keeps open leads nowhere now, which it may not have noticed.
	c.Client.HTTP.CloseIdleConnections()
	c.launch(t, web, rpc)
}

func (c *Cluster) launch(t testing.TB, web, rpc string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	agents, err := config.Parse(c.options.AgentsFile)
	require.NoError(t, err)
	c.server, err = allinone.New(ctx, allinone.Config{
		Logger: c.logger, Telemetry: telemetry.Disabled(),
		DataDir: c.dataDir, DatabaseURL: c.databaseURL, NATSURL: c.natsURL(),
		HTTP: web, GRPC: rpc, TaskStore: loopback, NATS: loopback,
		Agents: agents, Handlers: c.options.Agents,
	})
	require.NoError(t, err)
	require.NoError(t, c.server.Start(ctx))
	require.Eventually(t, func() bool { return c.server.Ready() == nil }, patience, 10*time.Millisecond)
}

// natsURL is empty for a cluster that embeds a server of its own.
func (c *Cluster) natsURL() string {
	if c.options.Beside == nil {
		return ""
	}
	return c.options.Beside.server.NATSURL()
}

// Stop stops the cluster; stopping again does nothing.
func (c *Cluster) Stop(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(t, c.server.Stop(ctx))
}

func newLogger(t testing.TB) *slog.Logger {
	t.Helper()
	path := os.Getenv(LogVariable)
	if path == "" {
		return slog.New(slog.DiscardHandler)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })
	return slog.New(slog.NewTextHandler(file, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// Backend is what programs beside the cluster need of it.
func (c *Cluster) Backend(t testing.TB) Backend {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agents.yaml")
	require.NoError(t, os.WriteFile(path, c.options.AgentsFile, 0o600))
	return Backend{TaskStoreAddr: c.server.TaskStoreAddr(), NATSURL: c.server.NATSURL(), AgentsFile: path}
}

// Resume redeems a grant as an agent's own call-back does.
func (c *Cluster) Resume(t testing.TB, grant string) error {
	t.Helper()
	return agent.Resume(t.Context(), TaskStore(t, c.server.TaskStoreAddr()), grant) //nolint:wrapcheck // what is tested
}
