// Package role lets one process of a cluster at a time do a piece of background
// work. A role is a row with a holder and a term; losing the process delays the
// work by the term at most, and two holders at once, should clocks disagree, must
// do no harm.
package role

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/errandhq/errand/pkg/lifecycle"
)

const (
	// How long a role is held without being renewed.
	term = 5 * time.Second
	// A holder works no longer than this without renewing, so that it has stopped
	// before another one begins.
	trust = 3 * time.Second
	// How often a process that doesn't hold the role asks for it.
	standby   = time.Second
	giveBack  = 2 * time.Second
	renewEach = 1500 * time.Millisecond
)

// Keeper keeps roles; the database does.
type Keeper interface {
	HoldRole(ctx context.Context, role, holder string, now, until time.Time) (bool, error)
	DropRole(ctx context.Context, role, holder string) error
}

// Work does one bounded piece of the role's work and tells how long to wait before
// the next one.
type Work func(ctx context.Context) (wait time.Duration)

// Options is what a loop needs. All fields are required.
type Options struct {
	Role   string
	Holder string
	Keeper Keeper
	Now    func() time.Time
	Logger *slog.Logger
}

// NewLoop returns a loop that does the work while it holds the role.
func NewLoop(o Options, work Work) *lifecycle.Loop {
	l := &loop{Options: o, work: work}
	return lifecycle.NewLoop(l.run)
}

type loop struct {
	Options
	work Work
	// When the role was last taken or renewed, by this process's own clock; zero
	// while another one has it.
	held time.Time
}

func (l *loop) run(ctx context.Context) error {
	defer l.drop(ctx)
	for ctx.Err() == nil {
		wait := standby
		if l.hold(ctx) {
			wait = l.workOnce(ctx)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
	return nil
}

// hold takes or renews the role, unless that was done a moment ago.
func (l *loop) hold(ctx context.Context) bool {
	if !l.held.IsZero() && time.Since(l.held) < renewEach {
		return true
	}
	began, now := time.Now(), l.Now()
	held, err := l.Keeper.HoldRole(ctx, l.Role, l.Holder, now, now.Add(term))
	if err != nil && ctx.Err() == nil {
		l.Logger.WarnContext(ctx, "could not take or renew a role", "role", l.Role, "error", err)
	}
	if held == l.held.IsZero() && err == nil {
		l.Logger.InfoContext(ctx, "a role changed hands", "role", l.Role, "held", held)
	}
	if !held {
		l.held = time.Time{}
		return false
	}
	l.held = began
	return true
}

func (l *loop) workOnce(ctx context.Context) time.Duration {
	ctx, cancel := context.WithDeadlineCause(ctx, l.held.Add(trust), errTerm)
	defer cancel()
	return l.work(ctx)
}

var errTerm = errors.New("the role must be renewed first")

// drop gives the role back, so that another process need not wait for its end.
func (l *loop) drop(ctx context.Context) {
	if l.held.IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBack)
	defer cancel()
	if err := l.Keeper.DropRole(ctx, l.Role, l.Holder); err != nil {
		l.Logger.WarnContext(ctx, "could not give a role back", "role", l.Role, "error", err)
	}
}
