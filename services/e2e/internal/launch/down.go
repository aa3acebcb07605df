package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// downGrace is how long what a killed launcher has left may take to end before it
// is killed.
const downGrace = 30 * time.Second

// ErrNotRunning says that no cluster runs in a directory.
var ErrNotRunning = errors.New("no cluster runs here")

// Down ends the cluster that runs in a directory: by asking its launcher to, or
// itself if the launcher has gone. It touches no other process, whatever ids the
// system gave anew.
func Down(ctx context.Context, dir string) error {
	r, err := readRecord(dir)
	if err != nil {
		return err
	}
	processes, err := systemProcesses(ctx)
	if err != nil {
		return err
	}
	if r.Launcher.lives(processes) {
		return endRecorded(ctx, []recorded{r.Launcher})
	}
	lives := func(p recorded) bool { return p.lives(processes) }
	if !slices.ContainsFunc(r.Processes, lives) {
		return fmt.Errorf("%s: %w", dir, ErrNotRunning)
	}
	for _, kinds := range endOrder {
		left := slices.DeleteFunc(slices.Clone(r.Processes), func(p recorded) bool { return !slices.Contains(kinds, p.Kind) || !lives(p) })
		if err := endOrKill(ctx, left); err != nil {
			return err
		}
	}
	return os.Remove(recordPath(dir))
}

func endOrKill(ctx context.Context, all []recorded) error {
	grace, cancel := context.WithTimeout(ctx, downGrace)
	defer cancel()
	if err := endRecorded(grace, all); err == nil || grace.Err() == nil {
		return err
	}
	for _, p := range all {
		if err := killTree(ctx, p.PID); err != nil {
			return fmt.Errorf("kill %s: %w", p.Name, err)
		}
	}
	return nil
}

// endRecorded asks for the end and waits until all have gone.
func endRecorded(ctx context.Context, all []recorded) error {
	var pids []int
	for _, p := range all {
		if err := thaw(ctx, p.PID); err != nil {
			return fmt.Errorf("continue %s: %w", p.Name, err)
		}
		if err := signalAll([]int{p.PID}, endSignal(p.Kind)); err != nil {
			return fmt.Errorf("terminate %s: %w", p.Name, err)
		}
		pids = append(pids, p.PID)
	}
	return awaitGone(ctx, pids)
}
