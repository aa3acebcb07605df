// Package chaos_test is a short chaos run of a fixed seed; `make chaos` has long
// ones of any.
package chaos_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/errandhq/errand/services/e2e/internal/chaos/run"
	"github.com/errandhq/errand/services/e2e/internal/harness"
	"github.com/errandhq/errand/services/e2e/internal/launch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The seed has a step of each kind, and each process is met.
const seed = 2

func TestNothingIsLostWhateverIsDoneToACluster(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	require.NoError(t, launch.Build(t.Context(), dir))
	agent := harness.Build(t, ".", "github.com/errandhq/errand/services/e2e/cmd/chaosagent")
	kept, err := run.Run(t.Context(), run.Config{
		Seed: seed, Duration: 50 * time.Second, Pace: 1500 * time.Millisecond, Senders: 60, Rate: 15,
		Stall: time.Minute, // the machine has other tests to run
		Dir:   dir, Bin: dir, Agent: agent, Out: t.Output(),
	})
	require.NoError(t, err, "see %s", dir)
	require.True(t, kept, "promises were broken; see %s", dir)
}

// newDir is a folder that the user postgres can pass through, and that stays if
// the test fails.
func newDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "errand-chaos-") //nolint:usetesting // it may stay
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() {
		if !t.Failed() {
			require.NoError(t, os.RemoveAll(dir))
		}
	})
	return dir
}
