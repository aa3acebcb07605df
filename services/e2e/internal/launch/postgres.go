package launch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/jackc/pgx/v5"

	"github.com/errandhq/errand/pkg/testkit/localpostgres"
)

// postgresProgram is a server on the data below dir, which is made if it is the
// first. Durability stays at Postgres' defaults.
func postgresProgram(ctx context.Context, dir, address string) (program, error) {
	bin, err := localpostgres.Programs()
	if err != nil {
		return program{}, fmt.Errorf("%w: install Postgres 14 or newer, or give the URL of a database", err)
	}
	owner, err := localpostgres.Owner()
	if err != nil {
		return program{}, err
	}
	data := filepath.Join(dir, "postgres")
	if _, err := os.Stat(data); errors.Is(err, fs.ErrNotExist) {
		if err := initDatabase(ctx, bin, data, owner); err != nil {
			return program{}, err
		}
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return program{}, fmt.Errorf("address of Postgres: %w", err)
	}
	return program{
		name: string(Postgres), kind: Postgres, user: owner,
		path: filepath.Join(bin, "postgres"),
		args: []string{
			"-D", data, "-c", "listen_addresses=" + host, "-c", "port=" + port,
			"-c", "unix_socket_directories=", "-c", "max_connections=300",
		},
		ready: func(ctx context.Context) error { return pingPostgres(ctx, postgresURL(address)) },
	}, nil
}

func postgresURL(address string) string {
	return "postgres://postgres@" + address + "/postgres?sslmode=disable"
}

// initDatabase makes the data folder, whole or not at all.
func initDatabase(ctx context.Context, bin, data string, owner *syscall.Credential) error {
	unfinished := data + ".new"
	if err := os.RemoveAll(unfinished); err != nil {
		return fmt.Errorf("remove an unfinished database: %w", err)
	}
	if err := os.Mkdir(unfinished, 0o700); err != nil {
		return fmt.Errorf("make a folder for Postgres: %w", err)
	}
	if owner != nil {
		if err := os.Chown(unfinished, int(owner.Uid), int(owner.Gid)); err != nil {
			return fmt.Errorf("give Postgres its folder: %w", err)
		}
	}
	// Nobody's tasks are in it yet; the server itself syncs what it writes.
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "initdb"),
		"--pgdata="+unfinished, "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
	cmd.Dir = string(filepath.Separator) // which everybody may enter
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: owner}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb in %s (its user must be able to pass through all folders above): %w: %s", unfinished, err, out)
	}
	if err := os.Rename(unfinished, data); err != nil {
		return fmt.Errorf("finish the database: %w", err)
	}
	return nil
}

func pingPostgres(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connect to Postgres: %w", err)
	}
	return conn.Close(ctx)
}
