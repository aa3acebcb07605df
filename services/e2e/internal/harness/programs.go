package harness

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/services/e2e/internal/binding"
)

// Dev is `errand dev` as a child process on fixed addresses.
type Dev struct {
	*Process
	Client *binding.Client
}

// BuildErrand compiles the errand binary.
func BuildErrand(t testing.TB) string {
	t.Helper()
	return Build(t, ".", "github.com/errandhq/errand/services/cmd/errand")
}

// StartDev starts `errand dev` with further arguments.
func StartDev(t testing.TB, binary string, args ...string) *Dev {
	t.Helper()
	web, rpc := freeAddress(t), freeAddress(t)
	client, err := binding.NewClient("http://"+web, rpc)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	args = slices.Concat([]string{"dev", "--http", web, "--grpc", rpc, "--ops", loopback}, args)
	return &Dev{Process: launch(t, client.URL+"/.well-known/agent-card.json", binary, args...), Client: client}
}

// StartExecutor starts a program made by executor.Main beside a cluster.
func StartExecutor(t testing.TB, c *Cluster, binary, agentsFile string) *Process {
	t.Helper()
	ops := freeAddress(t)
	return launch(t, "http://"+ops+"/readyz", binary,
		"--taskstore", c.server.TaskStoreAddr(), "--nats-url", c.server.NATSURL(), "--agents", agentsFile, "--ops", ops)
}
