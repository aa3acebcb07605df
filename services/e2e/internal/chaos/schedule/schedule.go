// Package schedule says what is done to a cluster, and when: a list that a seed
// decides completely before anything happens, that people can read, and that can
// be read back.
package schedule

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Kind is what is done to a process.
type Kind string

// The kinds.
const (
	// Kill ends the process at once (SIGKILL) and starts it again after For.
	Kill Kind = "kill"
	// Pause stops it (SIGSTOP) and lets it go on after For.
	Pause Kind = "pause"
	// Restart asks it to end (SIGTERM), waits for that, and starts it again after For.
	Restart Kind = "restart"
	// Cut separates it from all others for For; then what was under way arrives.
	Cut Kind = "cut"
	// Reset separates it too, but ends by breaking what was connected.
	Reset Kind = "reset"
	// Wipe kills the NATS server, removes all that it stored, and starts it again
	// after For.
	Wipe Kind = "wipe"
)

var kinds = map[Kind]bool{Kill: true, Pause: true, Restart: true, Cut: true, Reset: true, Wipe: true}

// Step is one thing done to one process.
type Step struct {
	// At is counted from the begin of the load.
	At     time.Duration
	Kind   Kind
	Target string
	For    time.Duration
}

// End is when the process is helped up again.
func (s Step) End() time.Duration { return s.At + s.For }

// String is the step as one line, in columns.
func (s Step) String() string {
	return fmt.Sprintf("%12s  %-8s %-12s %8s", s.At, s.Kind, s.Target, s.For)
}

// Schedule is steps by the time at which they begin.
type Schedule []Step

// Write writes one step a line.
func (s Schedule) Write(w io.Writer) error {
	for _, step := range s {
		if _, err := fmt.Fprintln(w, step); err != nil {
			return fmt.Errorf("write schedule: %w", err)
		}
	}
	return nil
}

// Parse reads what Write wrote. Empty lines, and those that begin with #, count
// for nothing.
func Parse(r io.Reader) (Schedule, error) {
	var s Schedule
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		step, err := parseStep(fields)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if len(s) > 0 && step.At < s[len(s)-1].At {
			return nil, fmt.Errorf("line %d: begins before the one above", n)
		}
		s = append(s, step)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read schedule: %w", err)
	}
	return s, nil
}

func parseStep(fields []string) (Step, error) {
	if len(fields) != 4 {
		return Step{}, errors.New("want: time kind target duration")
	}
	at, err := time.ParseDuration(fields[0])
	if err != nil {
		return Step{}, fmt.Errorf("time: %w", err)
	}
	kind := Kind(fields[1])
	if !kinds[kind] {
		return Step{}, fmt.Errorf("unknown kind %q", kind)
	}
	d, err := time.ParseDuration(fields[3])
	if err != nil {
		return Step{}, fmt.Errorf("duration: %w", err)
	}
	if at < 0 || d < 0 {
		return Step{}, errors.New("negative time")
	}
	return Step{At: at, Kind: kind, Target: fields[2], For: d}, nil
}
