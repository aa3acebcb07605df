package testkit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
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
	bin, err := findPostgres()
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

// unprivileged makes the server run as the user postgres when the tests run as
// root, which Postgres refuses, and out of the reach of the terminal's signals.
func unprivileged(dir string) (*syscall.SysProcAttr, error) {
	attributes := &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() != 0 {
		return attributes, nil
	}
	owner, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("find a user to run Postgres as: %w", err)
	}
	uid, uidErr := strconv.ParseUint(owner.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(owner.Gid, 10, 32)
	if err := errors.Join(uidErr, gidErr); err != nil {
		return nil, fmt.Errorf("ids of user postgres: %w", err)
	}
	attributes.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attributes, os.Chown(dir, int(uid), int(gid))
}

// findPostgres returns the folder of the newest installed server.
func findPostgres() (string, error) {
	var found []string
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin"} {
		matches, err := filepath.Glob(filepath.Join(pattern, "initdb"))
		if err != nil {
			return "", fmt.Errorf("look for Postgres: %w", err)
		}
		found = append(found, matches...)
	}
	if len(found) > 0 {
		return filepath.Dir(slices.Max(found)), nil
	}
	initdb, err := exec.LookPath("initdb")
	if err != nil {
		return "", errors.New("no Postgres server is installed")
	}
	resolved, err := filepath.EvalSymlinks(initdb)
	if err != nil {
		return "", fmt.Errorf("look for Postgres: %w", err)
	}
	return filepath.Dir(resolved), nil
}
