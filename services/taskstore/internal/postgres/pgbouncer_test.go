package postgres_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/errandhq/errand/pkg/testkit/localpostgres"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// pgbouncerVariable names a PgBouncer to test with. It is not looked for: whoever
// names one wants to know when it doesn't work.
const pgbouncerVariable = "ERRAND_TEST_PGBOUNCER"

// pgbouncer is a running PgBouncer in transaction mode, as it is configured by
// default otherwise.
type pgbouncer struct {
	program string
	dir     string
	owner   *syscall.Credential
	alive   io.Closer
	process *exec.Cmd
}

func newPgbouncer(t testing.TB, program, url string, size int) *pgbouncer {
	t.Helper()
	owner, err := localpostgres.Owner()
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "errand-pgbouncer-") //nolint:usetesting // whom it runs as may not see the test's
	require.NoError(t, err)
	if owner != nil {
		require.NoError(t, os.Chown(dir, int(owner.Uid), int(owner.Gid)))
	}
	p := &pgbouncer{program: program, dir: dir, owner: owner}
	version, err := exec.CommandContext(t.Context(), program, "--version").Output()
	require.NoError(t, err, "%s names no PgBouncer", pgbouncerVariable)
	name, _, _ := strings.Cut(string(version), "\n")
	t.Log("pooler:", name)
	require.NoError(t, os.WriteFile(p.ini(), []byte(p.settings(t, url, size)), 0o644))
	p.start(t)
	t.Cleanup(func() {
		p.stop(t)
		require.NoError(t, os.RemoveAll(dir))
	})
	return p
}

func (p *pgbouncer) ini() string { return filepath.Join(p.dir, "pgbouncer.ini") }

func (p *pgbouncer) settings(t testing.TB, url string, size int) string {
	t.Helper()
	server, err := pgconn.ParseConfig(url)
	require.NoError(t, err)
	password := ""
	if server.Password != "" {
		password = fmt.Sprintf("password='%s'", server.Password)
	}
	return fmt.Sprintf(`[databases]
pooled = host='%s' port=%d dbname='%s' user='%s' %s
[pgbouncer]
pool_mode = transaction
default_pool_size = %d
max_client_conn = 1000
auth_type = any
listen_addr =
listen_port = 6432
unix_socket_dir = %s
`, server.Host, server.Port, server.Database, server.User, password, size, p.dir)
}

func (p *pgbouncer) url(settings string) string {
	return fmt.Sprintf("postgres://postgres@/pooled?host=%s&port=6432&%s", p.dir, settings)
}

// start runs PgBouncer until the process's input closes, which the end of the
// tests does too.
func (p *pgbouncer) start(t testing.TB) {
	t.Helper()
	p.process = exec.Command("sh", "-c", `"$1" --quiet "$2" & cat; kill $!; wait $!`, "sh", p.program, p.ini())
	p.process.Dir, p.process.Stderr = p.dir, t.Output()
	p.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: p.owner}
	alive, err := p.process.StdinPipe()
	require.NoError(t, err)
	p.alive = alive
	require.NoError(t, p.process.Start())
	require.Eventually(t, func() bool {
		conn, err := pgconn.Connect(t.Context(), p.url(""))
		return err == nil && conn.Close(t.Context()) == nil
	}, 10*time.Second, 10*time.Millisecond, "PgBouncer does not answer")
}

func (p *pgbouncer) stop(t testing.TB) {
	t.Helper()
	require.NoError(t, p.alive.Close())
	_ = p.process.Wait()
}

func (p *pgbouncer) restart(t testing.TB) {
	t.Helper()
	p.stop(t)
	p.start(t)
}
