package harness

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/services/e2e/internal/launch"
)

// patience bounds starts and stops.
const patience = 60 * time.Second

// Build compiles a main package, named from the folder, and returns the path of
// the binary. A module outside of the workspace needs GOWORK=off.
func Build(t testing.TB, folder, main string, env ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "binary")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, main)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// Process is a child process that a test may kill and start again.
type Process struct{ *launch.Process }

// spawn starts a process, which ends with the test, and waits until it serves.
func spawn(t testing.TB, program launch.Program) *Process {
	t.Helper()
	program.Log = filepath.Join(t.TempDir(), "log")
	p := &Process{launch.NewProcess(program)}
	t.Cleanup(func() { p.Stop(t) })
	p.Start(t)
	return p
}

// Start starts the process after it ended, and waits until it serves.
func (p *Process) Start(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(t, p.Process.Start(ctx))
	require.NoError(t, p.Ready(ctx))
}

// Kill ends the process at once, as kill -9 does, and waits for that. It must not
// have ended before.
func (p *Process) Kill(t testing.TB) {
	t.Helper()
	select {
	case <-p.Ended():
		t.Fatalf("%s ended by itself", p.Name())
	default:
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(t, p.Process.Kill(ctx))
}

// Stop asks the process to end and waits for that. It may have ended before.
func (p *Process) Stop(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := p.Terminate(ctx); err != nil {
		t.Errorf("%v", errors.Join(err, p.Process.Kill(context.Background())))
	}
}

// FreeAddress is a loopback address that was free a moment ago: a process that
// starts anew must be found where it was.
func FreeAddress(t testing.TB) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", loopback)
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
