package testkit

import (
	"errors"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/errandhq/errand/pkg/testkit/localpostgres"
	"github.com/stretchr/testify/require"
)

// PostgresServer is a server of a test's own, for what the shared one can't stand:
// to be killed, paused, restarted, replaced by its standby. It is reached by the
// socket in its folder and goes away with the test, or with the test's process.
type PostgresServer struct {
	t     testing.TB
	bin   string
	dir   string
	owner *syscall.Credential
}

// NewPostgresServer starts an empty server.
func NewPostgresServer(t testing.TB) *PostgresServer {
	t.Helper()
	s := newPostgresServer(t)
	s.run("initdb", "--pgdata="+s.data(), "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
	s.Start()
	return s
}

// Standby starts a server that follows this one, from then on with each commit:
// what has been acknowledged is on both.
func (s *PostgresServer) Standby(t testing.TB) *PostgresServer {
	t.Helper()
	standby := newPostgresServer(t)
	standby.run("pg_basebackup", "--pgdata="+standby.data(), "--host="+s.dir, "--username=postgres",
		"--write-recovery-conf", "--checkpoint=fast", "--no-sync")
	standby.Start()
	for _, statement := range []string{"ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"} {
		require.NoError(t, admin(s.url(), statement))
	}
	return standby
}

// PostgresURL is the URL of a database named postgres on the first of the servers
// that takes writes.
func PostgresURL(servers ...*PostgresServer) string {
	folders := make([]string, len(servers))
	for i, s := range servers {
		folders[i] = s.dir
	}
	u := url.URL{Scheme: "postgres", User: url.User("postgres"), Path: "/postgres"}
	u.RawQuery = "host=" + strings.Join(folders, ",")
	return u.String()
}

// Start starts a server that isn't running.
func (s *PostgresServer) Start() {
	s.t.Helper()
	s.control("start", "--log="+filepath.Join(s.dir, "log"), "--options=-c listen_addresses='' -c unix_socket_directories='"+
		s.dir+"' -c max_connections=100 -c fsync=off -c full_page_writes=off")
}

// Restart ends the server as a crash does, without a word to its clients, and
// starts it again.
func (s *PostgresServer) Restart() {
	s.t.Helper()
	s.control("restart", "--mode=immediate", "--log="+filepath.Join(s.dir, "log"))
}

// Kill ends all of the server's processes at once.
func (s *PostgresServer) Kill() {
	s.t.Helper()
	for _, pid := range s.signal(syscall.SIGKILL) {
		require.Eventually(s.t, func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) },
			postgresPatience, time.Millisecond)
	}
}

// Pause stops all of the server's processes where they are, until Resume.
func (s *PostgresServer) Pause() { s.t.Helper(); s.signal(syscall.SIGSTOP) }

// Resume lets a paused server go on.
func (s *PostgresServer) Resume() { s.t.Helper(); s.signal(syscall.SIGCONT) }

// Promote makes a standby take writes.
func (s *PostgresServer) Promote() { s.t.Helper(); s.control("promote") }

// Exec runs one statement.
func (s *PostgresServer) Exec(statement string) {
	s.t.Helper()
	require.NoError(s.t, admin(s.url(), statement))
}

func newPostgresServer(t testing.TB) *PostgresServer {
	t.Helper()
	bin, err := localpostgres.Programs()
	require.NoError(t, err, "this test needs the programs of Postgres 14 or newer on this machine")
	owner, err := localpostgres.Owner()
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "errand-postgres-") //nolint:usetesting // whom the server runs as may not see the test's
	require.NoError(t, err)
	if owner != nil {
		require.NoError(t, os.Chown(dir, int(owner.Uid), int(owner.Gid)))
	}
	s := &PostgresServer{t: t, bin: bin, dir: dir, owner: owner}
	alive, guard := s.guard()
	t.Cleanup(func() {
		require.NoError(t, alive.Close())
		require.NoError(t, guard.Wait())
	})
	return s
}

// guard waits until its input closes, which the end of this process does too, and
// removes the server.
func (s *PostgresServer) guard() (io.Closer, *exec.Cmd) {
	s.t.Helper()
	cmd := exec.Command("sh", "-c", `cat; "$2/pg_ctl" stop --mode=immediate --pgdata="$1/data"; rm -rf "$1"`, "sh", s.dir, s.bin)
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: s.owner}
	alive, err := cmd.StdinPipe()
	require.NoError(s.t, err)
	require.NoError(s.t, cmd.Start())
	return alive, cmd
}

func (s *PostgresServer) data() string { return filepath.Join(s.dir, "data") }

func (s *PostgresServer) url() *url.URL {
	u, err := url.Parse(PostgresURL(s))
	require.NoError(s.t, err)
	return u
}

func (s *PostgresServer) control(action string, arguments ...string) {
	s.t.Helper()
	s.run("pg_ctl", append([]string{action, "--wait", "--silent", "--pgdata=" + s.data()}, arguments...)...)
}

// run runs a program to its end. What it says goes to a file: a server that it
// starts would keep a pipe open.
func (s *PostgresServer) run(program string, arguments ...string) {
	s.t.Helper()
	said, err := os.CreateTemp(s.t.TempDir(), program)
	require.NoError(s.t, err)
	defer said.Close()
	cmd := exec.CommandContext(s.t.Context(), filepath.Join(s.bin, program), arguments...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: s.owner}
	if err := cmd.Run(); err != nil {
		output, _ := os.ReadFile(said.Name())
		log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
		require.NoError(s.t, err, "%s: %s\n%s", program, output, log)
	}
}

// signal sends a signal to the server and to its children, and returns them.
func (s *PostgresServer) signal(sig syscall.Signal) []int {
	s.t.Helper()
	file, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	require.NoError(s.t, err)
	first, _, _ := strings.Cut(string(file), "\n")
	children, err := exec.CommandContext(s.t.Context(), "pgrep", "-P", first).Output()
	require.NoError(s.t, err)
	var pids []int
	for _, field := range append([]string{first}, strings.Fields(string(children))...) {
		pid, err := strconv.Atoi(field)
		require.NoError(s.t, err)
		pids = append(pids, pid)
		if err := syscall.Kill(pid, sig); !errors.Is(err, syscall.ESRCH) {
			require.NoError(s.t, err)
		}
	}
	return pids
}
