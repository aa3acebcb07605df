package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// goneInterval is how often the system is asked whether processes have gone that
// are not the launcher's children.
const goneInterval = 20 * time.Millisecond

// systemProcess is what the system knows of a process.
type systemProcess struct {
	parent  int
	command string
}

// systemProcesses are all processes of the machine by their id, without those that
// have ended and only wait for their parent.
func systemProcesses(ctx context.Context) (map[int]systemProcess, error) {
	cmd := exec.CommandContext(ctx, "ps", "-A", "-ww", "-o", "pid=,ppid=,stat=,args=")
	cmd.Env = append(os.Environ(), "LC_ALL=C") // the same letters for each who asks
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}
	processes := map[int]systemProcess{}
	for line := range strings.Lines(string(bytes.TrimSpace(out))) {
		fields := strings.Fields(line)
		if len(fields) < 4 || strings.HasPrefix(fields[2], "Z") {
			continue
		}
		pid, pidErr := strconv.Atoi(fields[0])
		parent, parentErr := strconv.Atoi(fields[1])
		if err := errors.Join(pidErr, parentErr); err != nil {
			return nil, fmt.Errorf("read the list of processes: %w", err)
		}
		processes[pid] = systemProcess{parent: parent, command: strings.Join(fields[3:], " ")}
	}
	return processes, nil
}

// freeze stops a process and all that descend from it, and returns their ids. Who
// is stopped makes no further children.
func freeze(ctx context.Context, pid int) ([]int, error) {
	tree := []int{pid}
	for fresh := tree; len(fresh) > 0; {
		if err := signalAll(fresh, syscall.SIGSTOP); err != nil {
			return nil, err
		}
		whole, err := descendants(ctx, pid)
		if err != nil {
			return nil, err
		}
		fresh = slices.DeleteFunc(whole, func(child int) bool { return slices.Contains(tree, child) })
		tree = append(tree, fresh...)
	}
	return tree, nil
}

// thaw undoes freeze.
func thaw(ctx context.Context, pid int) error {
	tree, err := descendants(ctx, pid)
	if err != nil {
		return err
	}
	return signalAll(append(tree, pid), syscall.SIGCONT)
}

// descendants are the children of a process, their children and so on.
func descendants(ctx context.Context, pid int) ([]int, error) {
	processes, err := systemProcesses(ctx)
	if err != nil {
		return nil, err
	}
	children := map[int][]int{}
	for child, p := range processes {
		children[p.parent] = append(children[p.parent], child)
	}
	found := slices.Clone(children[pid])
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found, nil
}

// killTree ends a process and all that descend from it, and waits until they have
// gone.
func killTree(ctx context.Context, pid int) error {
	tree, err := freeze(ctx, pid)
	if err != nil {
		return err
	}
	if err := signalAll(tree, syscall.SIGKILL); err != nil {
		return err
	}
	return awaitGone(ctx, tree)
}

func awaitGone(ctx context.Context, pids []int) error {
	tick := time.NewTicker(goneInterval)
	defer tick.Stop()
	for {
		processes, err := systemProcesses(ctx)
		if err != nil {
			return err
		}
		left := 0
		for _, pid := range pids {
			if _, lives := processes[pid]; lives {
				left++
			}
		}
		if left == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for %d processes to end: %w", left, context.Cause(ctx))
		}
	}
}

// signalAll sends a signal to each that still runs.
func signalAll(pids []int, signal syscall.Signal) error {
	for _, pid := range pids {
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("send %s to process %d: %w", signal, pid, err)
		}
	}
	return nil
}
