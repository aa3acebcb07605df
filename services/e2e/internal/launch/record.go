package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// record says what runs of a cluster, for whoever has to end it.
type record struct {
	Launcher  recorded   `json:"launcher"`
	Processes []recorded `json:"processes"`
}

// recorded names a process of the system. An id is given anew after its process
// has ended, so the command stands beside it.
type recorded struct {
	Name    string `json:"name"`
	Kind    Kind   `json:"kind,omitempty"`
	PID     int    `json:"pid"`
	Command string `json:"command"`
}

func (r recorded) lives(processes map[int]systemProcess) bool {
	found, ok := processes[r.PID]
	return ok && found.command == r.Command
}

func recordPath(dir string) string { return filepath.Join(dir, "cluster.json") }

// readRecord returns an empty record where there is none.
func readRecord(dir string) (record, error) {
	var r record
	text, err := os.ReadFile(recordPath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("read the record of the cluster: %w", err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("read the record of the cluster in %s: %w", recordPath(dir), err)
	}
	return r, nil
}

// write replaces the record at once.
func (r record) write(dir string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write the record of the cluster: %w", err)
	}
	if err := replace(recordPath(dir), append(text, '\n')); err != nil {
		return fmt.Errorf("write the record of the cluster: %w", err)
	}
	return nil
}

// replace writes a file at once: whole or not at all.
func replace(path string, text []byte) error {
	unfinished := path + ".new"
	if err := os.WriteFile(unfinished, text, 0o600); err != nil {
		return err
	}
	return os.Rename(unfinished, path)
}

// ErrRunning refuses to start a cluster in the directory of one that runs.
var ErrRunning = errors.New("a cluster runs here already; end it first")

// claimDir makes a directory this launcher's own until the file is closed, which
// the end of the launcher does too.
func claimDir(ctx context.Context, dir string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o755); err != nil {
		return nil, fmt.Errorf("make the cluster's folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the cluster's folder: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("%s: %w", dir, ErrRunning)
	}
	if err := noneLives(ctx, dir); err != nil {
		_ = lock.Close()
		return nil, err
	}
	return lock, nil
}

// noneLives finds what a launcher that was killed has left.
func noneLives(ctx context.Context, dir string) error {
	r, err := readRecord(dir)
	if err != nil {
		return err
	}
	processes, err := systemProcesses(ctx)
	if err != nil {
		return err
	}
	for _, p := range r.Processes {
		if p.lives(processes) {
			return fmt.Errorf("%s: process %d is %s: %w", dir, p.PID, p.Name, ErrRunning)
		}
	}
	return nil
}
