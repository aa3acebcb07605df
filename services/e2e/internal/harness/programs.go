package harness

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"

	"github.com/errandhq/errand/pkg/natsconn/embedded"
	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/launch"
)

// Dev is `errand dev` as a child process on fixed addresses.
type Dev struct {
	*Process
	Client *binding.Client
	// TaskStoreAddr and NATSURL are for executors in other processes; where the
	// process was given another NATS server, that one's.
	TaskStoreAddr, NATSURL string
}

// BuildErrand compiles the errand binary.
func BuildErrand(t testing.TB) string {
	t.Helper()
	return Build(t, ".", "github.com/errandhq/errand/services/cmd/errand")
}

// StartDev starts `errand dev` with further arguments.
func StartDev(t testing.TB, binary string, args ...string) *Dev {
	t.Helper()
	web, rpc, store, queue := FreeAddress(t), FreeAddress(t), FreeAddress(t), FreeAddress(t)
	d := &Dev{Client: newClient(t, web, rpc), TaskStoreAddr: store, NATSURL: "nats://" + queue}
	if i := slices.Index(args, "--nats-url"); i >= 0 {
		d.NATSURL = args[i+1]
	} else {
		args = append(args, "--nats-listen", queue)
	}
	args = slices.Concat([]string{"dev", "--http", web, "--grpc", rpc, "--ops", loopback, "--taskstore-listen", store}, args)
	d.Process = spawn(t, launch.Program{Path: binary, Args: args, Ready: d.Client.URL + "/.well-known/agent-card.json"})
	return d
}

func newClient(t testing.TB, web, rpc string) *binding.Client {
	t.Helper()
	client, err := binding.NewClient("http://"+web, rpc)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// StartNATS starts a NATS server that several nodes can share, and returns its
// URL. It ends with the test.
func StartNATS(t testing.TB) string {
	t.Helper()
	server := embedded.New(embedded.Config{DataDir: t.TempDir(), Listen: loopback, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, server.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, server.Stop(context.Background())) })
	return server.URL()
}

// TaskStore connects to a task store, to look at what no sender sees.
func TaskStore(t testing.TB, addr string) taskstorev1.TaskStoreServiceClient {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return taskstorev1.NewTaskStoreServiceClient(conn)
}

// Backend is what a program of its own needs of a running cluster.
type Backend struct {
	TaskStoreAddr, NATSURL string
	// AgentsFile is the path of the cluster's agents file.
	AgentsFile string
}

func (b Backend) args() []string {
	return []string{"--taskstore", b.TaskStoreAddr, "--nats-url", b.NATSURL, "--agents", b.AgentsFile}
}

// StartExecutor starts a program made by executor.Main, with further environment
// variables.
func StartExecutor(t testing.TB, b Backend, binary string, env ...string) *Process {
	t.Helper()
	ops := FreeAddress(t)
	return spawn(t, launch.Program{Path: binary, Args: append(b.args(), "--ops", ops), Env: env, Ready: "http://" + ops + "/readyz"})
}

// Edge is a gateway and its notifier, each a process of its own.
type Edge struct {
	Client            *binding.Client
	Gateway, Notifier *Process
}

// EdgePrograms are the binaries of an edge.
type EdgePrograms struct{ gateway, notifier string }

// BuildEdge compiles them.
func BuildEdge(t testing.TB) EdgePrograms {
	t.Helper()
	const programs = "github.com/errandhq/errand/services/cmd/"
	return EdgePrograms{gateway: Build(t, ".", programs+"gateway"), notifier: Build(t, ".", programs+"notifier")}
}

// Start starts errand-notifier and errand-gateway beside a cluster.
func (p EdgePrograms) Start(t testing.TB, b Backend) *Edge {
	t.Helper()
	web, rpc, notifier := FreeAddress(t), FreeAddress(t), FreeAddress(t)
	start := func(binary string, args ...string) *Process {
		ops := FreeAddress(t)
		args = slices.Concat(b.args(), []string{"--ops", ops}, args)
		return spawn(t, launch.Program{Path: binary, Args: args, Ready: "http://" + ops + "/readyz"})
	}
	e := &Edge{Client: newClient(t, web, rpc)}
	e.Notifier = start(p.notifier, "--grpc", notifier)
	e.Gateway = start(p.gateway, "--http", web, "--grpc", rpc, "--notifier", notifier)
	return e
}
