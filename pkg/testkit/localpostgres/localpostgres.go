// Package localpostgres finds the Postgres programs of this machine, and the user
// to run them as, for servers of one's own.
package localpostgres

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// ErrNotInstalled says that the machine has no Postgres server.
var ErrNotInstalled = errors.New("no Postgres server is installed")

// Programs returns the folder of the newest installed server.
func Programs() (string, error) {
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
		return "", ErrNotInstalled
	}
	resolved, err := filepath.EvalSymlinks(initdb)
	if err != nil {
		return "", fmt.Errorf("look for Postgres: %w", err)
	}
	return filepath.Dir(resolved), nil
}

// Owner is whom the server has to run as: the user postgres for a caller that is
// root, as which Postgres refuses to run; else nil, the caller's own user.
func Owner() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // nobody else
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
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}
