// Package nemesis does to a cluster what a schedule says, and helps it up again.
// What the cluster does of itself, such as ending without being told to, or not
// coming back, is a fault.
package nemesis

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/errandhq/errand/services/e2e/internal/chaos/journal"
	"github.com/errandhq/errand/services/e2e/internal/chaos/schedule"
)

// patience is how long a process may take to end, or to be ready again.
const patience = 60 * time.Second

// Nemesis is what befalls one cluster.
type Nemesis struct {
	cluster   Cluster
	processes map[string]Process
	schedule  schedule.Schedule
	logger    *slog.Logger
	// One for each process, full while something is done to it.
	held map[string]chan struct{}

	mu            sync.Mutex
	interruptions []journal.Interruption
	faults        []string
}

// New fails if the schedule names a process that the cluster doesn't have.
func New(cluster Cluster, processes []Process, s schedule.Schedule, logger *slog.Logger) (*Nemesis, error) {
	n := &Nemesis{cluster: cluster, processes: map[string]Process{}, schedule: s, logger: logger, held: map[string]chan struct{}{}}
	for _, p := range processes {
		n.processes[p.Name()], n.held[p.Name()] = p, make(chan struct{}, 1)
	}
	for _, step := range s {
		if n.held[step.Target] == nil {
			return nil, fmt.Errorf("schedule: the cluster has no process %s", step.Target)
		}
	}
	return n, nil
}

// Run takes the steps, and returns when all processes are up again: after the
// last step, or soon after ctx has ended.
func (n *Nemesis) Run(ctx context.Context) {
	var steps sync.WaitGroup
	defer steps.Wait()
	begun := time.Now()
	for _, step := range n.schedule {
		if !wait(ctx, time.Until(begun.Add(step.At))) {
			return
		}
		steps.Go(func() { n.take(ctx, step) })
	}
}

// Watch looks until ctx ends whether processes end by themselves, and starts
// them again.
func (n *Nemesis) Watch(ctx context.Context) {
	var watchers sync.WaitGroup
	for _, p := range n.processes {
		watchers.Go(func() {
			for n.watch(ctx, p) {
				continue
			}
		})
	}
	watchers.Wait()
}

func (n *Nemesis) watch(ctx context.Context, p Process) bool {
	select {
	case <-p.Ended():
	case <-ctx.Done():
		return false
	}
	defer n.hold(p.Name())()
	if ctx.Err() != nil || alive(p) {
		return ctx.Err() == nil
	}
	n.faultf(ctx, "%s ended by itself; see %s", p.Name(), p.Log())
	if err := p.Start(ctx); err != nil {
		n.faultf(ctx, "start %s: %v", p.Name(), err)
		return false
	}
	return true
}

// hold waits until nothing else is done to a process; the function that it
// returns lets go.
func (n *Nemesis) hold(process string) (release func()) {
	n.held[process] <- struct{}{}
	return func() { <-n.held[process] }
}

func alive(p Process) bool {
	select {
	case <-p.Ended():
		return false
	default:
		return true
	}
}

func (n *Nemesis) faultf(ctx context.Context, format string, args ...any) {
	fault := fmt.Sprintf(format, args...)
	n.logger.ErrorContext(ctx, "fault", "what", fault)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults = append(n.faults, fault)
}

// Interruptions are what was done so far, with the times at which it was.
func (n *Nemesis) Interruptions() []journal.Interruption {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.interruptions)
}

// Faults are what processes did so far that the schedule doesn't explain.
func (n *Nemesis) Faults() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.faults)
}

// wait tells whether the time passed before ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
