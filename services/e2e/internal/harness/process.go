package harness

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/services/e2e/internal/binding"
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

// command is what a process runs.
type command struct {
	path string
	args []string
	// env is added to the test's own environment.
	env []string
}

// Process is a child process that a test may kill and start again.
type Process struct {
	command command
	// ready answers 200 once the process serves.
	ready string
	log   string
	web   *http.Client

	cmd    *exec.Cmd
	exited chan error
}

// spawn starts a process, which ends with the test, and waits until it serves.
func spawn(t testing.TB, c command, ready string) *Process {
	t.Helper()
	p := &Process{command: c, ready: ready, log: filepath.Join(t.TempDir(), "log"), web: &http.Client{Transport: &http.Transport{}}}
	p.Start(t)
	t.Cleanup(func() {
		p.Stop(t)
		p.web.CloseIdleConnections()
	})
	return p
}

// Start starts the process after it ended, and waits until it serves.
func (p *Process) Start(t testing.TB) {
	t.Helper()
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	p.cmd = exec.Command(p.command.path, p.command.args...) // its end is Kill or Stop
	p.cmd.Env = append(os.Environ(), p.command.env...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	require.NoError(t, p.cmd.Start())
	p.exited = make(chan error, 1)
	go func(cmd *exec.Cmd, exited chan<- error) {
		exited <- cmd.Wait()
		close(exited)
		_ = log.Close()
	}(p.cmd, p.exited)
	p.awaitServing(t)
}

func (p *Process) awaitServing(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		r, err := binding.Do(ctx, p.web, http.MethodGet, p.ready, http.Header{}, nil)
		if err == nil && r.Status == http.StatusOK {
			return
		}
		select {
		case <-tick.C:
		case err := <-p.exited:
			t.Fatalf("%s ended: %v\n%s", p.command.path, err, p.Log())
		case <-ctx.Done():
			t.Fatalf("%s does not serve\n%s", p.command.path, p.Log())
		}
	}
}

// Kill ends the process at once, as kill -9 does, and waits for that.
func (p *Process) Kill(t testing.TB) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Kill())
	<-p.exited
}

// Stop asks the process to end and waits for that. It may have ended before.
func (p *Process) Stop(t testing.TB) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("stop %s: %v", p.command.path, err)
	}
	select {
	case <-p.exited:
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		t.Errorf("%s does not stop\n%s", p.command.path, p.Log())
	}
}

// PID is the process id of the child that runs now.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Log is the end of what the process has written.
func (p *Process) Log() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	const tail = 20_000
	return string(text[max(0, len(text)-tail):])
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
