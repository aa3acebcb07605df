// Package role lets one process of a cluster at a time do a piece of background
// work. A role is a row with a holder and a term; losing the process delays the
// work by the term at most, and two holders at once, should clocks disagree, must
// do no harm.
package role

import (
	"context"
	"errors"
	"log/slog"
	"sync"
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
	// How often it is looked whether the role is to be renewed while work goes on.
	renewPoll = 500 * time.Millisecond
	// A piece of work that takes longer is stuck.
	workTimeout = 30 * time.Second
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

// hold takes or renews the role, unless that was done a moment ago. A renewal that
// fails leaves the role held as long as it can be trusted.
func (l *loop) hold(ctx context.Context) bool {
	if !l.held.IsZero() && time.Since(l.held) < renewEach {
		return true
	}
	began, now := time.Now(), l.Now()
	held, err := l.Keeper.HoldRole(ctx, l.Role, l.Holder, now, now.Add(term))
	if err != nil {
		if ctx.Err() == nil {
			l.Logger.WarnContext(ctx, "could not take or renew a role", "role", l.Role, "error", err)
		}
		if time.Since(l.held) >= trust {
			l.held = time.Time{}
		}
		return !l.held.IsZero()
	}
	if held == l.held.IsZero() {
		l.Logger.InfoContext(ctx, "a role changed hands", "role", l.Role, "held", held)
	}
	l.held = time.Time{}
	if held {
		l.held = began
	}
	return held
}

func (l *loop) workOnce(ctx context.Context) time.Duration {
	ctx, cancel := context.WithTimeoutCause(ctx, workTimeout, errStuck)
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() { l.renew(ctx, end) })
	defer renewing.Wait()
	defer end(nil)
	return l.work(ctx)
}

var (
	errStuck = errors.New("the work took too long")
	errTerm  = errors.New("the role could not be renewed")
)

// renew keeps the role while work goes on, and ends the work when it can't: work
// that is slow, because the database is, must not be cut off each time.
func (l *loop) renew(ctx context.Context, end context.CancelCauseFunc) {
	poll := time.NewTicker(renewPoll)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
		}
		// Not cut off by the end of the work: the role is for the next piece too.
		limited, cancel := context.WithDeadline(context.WithoutCancel(ctx), l.held.Add(trust))
		held := l.hold(limited)
		cancel()
		if !held {
			end(errTerm)
			return
		}
	}
}

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
