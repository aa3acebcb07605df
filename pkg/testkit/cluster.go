package testkit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"syscall"

	"github.com/errandhq/errand/pkg/testkit/localpostgres"
)

// clusterScript makes and runs a temporary server: $1 is its directory, $2 where
// the binaries are. It says "ready", or prints the log if that fails; then it
// waits for its input to close, which happens when the test process ends, in
// whatever way, and removes everything. Nothing is flushed to the disk: tests
// kill processes, never the machine. Measurements of speed want a server of
// their own, see DatabaseURLVariable.
const clusterScript = `
if "$2/initdb" --pgdata="$1/data" --username=postgres --auth=trust --encoding=UTF8 --locale=C --no-sync >"$1/log" 2>&1 &&
	"$2/pg_ctl" start --wait --timeout=60 --pgdata="$1/data" --log="$1/log" --options="-c listen_addresses='' \
		-c unix_socket_directories='$1' -c max_connections=300 -c fsync=off -c full_page_writes=off" >/dev/null 2>&1
then
	echo ready
	cat >/dev/null
else
	cat "$1/log"
fi
"$2/pg_ctl" stop --mode=immediate --pgdata="$1/data" >/dev/null 2>&1
rm -rf "$1"
`

// cluster is a temporary server that lives as long as alive stays open.
type cluster struct {
	url   *url.URL
	alive io.Closer
}

func startCluster() (*cluster, error) {
	bin, err := localpostgres.Programs()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "errand-postgres-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for Postgres: %w", err)
	}
	alive, err := runCluster(dir, bin)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start Postgres from %s: %w", bin, err), os.RemoveAll(dir))
	}
	server := &url.URL{
		Scheme:   "postgres",
		User:     url.User("postgres"),
		Path:     "/postgres",
		RawQuery: url.Values{"host": {dir}}.Encode(),
	}
	return &cluster{url: server, alive: alive}, nil
}

func runCluster(dir, bin string) (alive io.Closer, err error) {
	cmd := exec.Command("sh", "-c", clusterScript, "sh", dir, bin)
	cmd.Dir = dir
	if cmd.SysProcAttr, err = unprivileged(dir); err != nil {
		return nil, err
	}
	alive, err = cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	out := bufio.NewReader(stdout)
	line, err := out.ReadString('\n')
	if line == "ready\n" {
		return alive, nil
	}
	log, readErr := io.ReadAll(out)
	return nil, errors.Join(err, readErr, fmt.Errorf("%s%s", line, log), cmd.Wait())
}

// unprivileged makes the server run as a user whom Postgres accepts, and out of
// the reach of the terminal's signals.
func unprivileged(dir string) (*syscall.SysProcAttr, error) {
	owner, err := localpostgres.Owner()
	if err != nil {
		return nil, err
	}
	attributes := &syscall.SysProcAttr{Setpgid: true, Credential: owner}
	if owner == nil {
		return attributes, nil
	}
	return attributes, os.Chown(dir, int(owner.Uid), int(owner.Gid))
}
