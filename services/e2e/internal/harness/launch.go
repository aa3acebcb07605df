package harness

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/services/e2e/internal/launch"
)

// BuildPrograms compiles the programs of a launched cluster and returns their
// folder.
func BuildPrograms(t testing.TB) string {
	t.Helper()
	bin := t.TempDir()
	require.NoError(t, launch.Build(t.Context(), bin))
	return bin
}

// ClusterDir is a folder for a launched cluster, removed when the test ends.
// Unlike t.TempDir it lets the user postgres pass, as whom Postgres runs in
// tests that run as root.
func ClusterDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "errand-cluster-") //nolint:usetesting // see above
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// Launch starts a cluster of processes, which ends with the test.
func Launch(t testing.TB, cfg launch.Config) *launch.Cluster {
	t.Helper()
	c, err := launch.Start(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, c.Stop(ctx))
	})
	return c
}
