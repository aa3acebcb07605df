package nemesis

import (
	"context"
	"time"

	"github.com/errandhq/errand/services/e2e/internal/chaos/journal"
	"github.com/errandhq/errand/services/e2e/internal/chaos/schedule"
)

// take takes one step. A step waits for the one before it on the same process,
// which may have taken long to be ready.
func (n *Nemesis) take(ctx context.Context, step schedule.Step) {
	defer n.hold(step.Target)()
	p := n.processes[step.Target]
	if !alive(p) {
		return // the watcher's
	}
	logger := n.logger.With("step", step.Kind, "process", p.Name(), "for", step.For)
	begun := time.Now()
	logger.InfoContext(ctx, "step")
	n.try(ctx, step, "strike", n.down(p, step.Kind))
	wait(ctx, step.For)
	n.try(ctx, step, "help up", n.up(p, step.Kind))
	n.try(ctx, step, "wait for", p.Ready)
	ended := time.Now()
	logger.InfoContext(ctx, "step is over", "took", ended.Sub(begun))
	n.mu.Lock()
	defer n.mu.Unlock()
	n.interruptions = append(n.interruptions, journal.Interruption{Begun: begun, Ended: ended, Kind: named(step.Kind), Target: step.Target})
}

// try does not end with ctx: what was struck is helped up.
func (n *Nemesis) try(ctx context.Context, step schedule.Step, what string, do func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err := do(ctx); err != nil {
		n.faultf(ctx, "%s %s for %s: %v; see %s", what, step.Target, step.Kind, err, n.processes[step.Target].Log())
	}
}

// down is the begin of what is done.
func (n *Nemesis) down(p Process, kind schedule.Kind) func(context.Context) error {
	switch kind {
	case schedule.Pause:
		return p.Pause
	case schedule.Restart:
		return p.Terminate
	case schedule.Cut, schedule.Reset:
		return func(context.Context) error {
			n.cluster.Cut(p.Name())
			return nil
		}
	default:
		return p.Kill
	}
}

// up is the end of what is done.
func (n *Nemesis) up(p Process, kind schedule.Kind) func(context.Context) error {
	switch kind {
	case schedule.Pause:
		return p.Continue
	case schedule.Cut:
		return func(context.Context) error {
			n.cluster.Heal(p.Name())
			return nil
		}
	case schedule.Reset:
		return func(context.Context) error {
			n.cluster.Reset(p.Name())
			n.cluster.Heal(p.Name())
			return nil
		}
	case schedule.Wipe:
		return n.cluster.WipeNATS
	default:
		return p.Start
	}
}

// named is the kind as the journal calls it.
func named(kind schedule.Kind) string {
	if kind == schedule.Reset {
		return string(schedule.Cut)
	}
	return string(kind)
}
