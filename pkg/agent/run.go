package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
)

// Claim is a claimed task and what its runs need. Executors make it; authors of
// agents don't.
type Claim struct {
	Agent  Agent
	Proto  *taskstorev1.Claim
	Lease  Lease
	Store  Store
	Logger *slog.Logger
	// Encoded size that no event may exceed.
	MaxEventBytes int
	// How long a handler may go on after its context has ended, before it is
	// given up. Its goroutine stays until it returns.
	Patience time.Duration
}

// Outcome is how a claim ended.
type Outcome struct {
	// The state in which the turn was settled; unspecified if it wasn't.
	State task.State
	// The task was given back.
	Released bool
	// Why the claim ended in no other way: ErrCanceled, ErrLeaseLost, or a
	// failure of the store. Nothing is known to be written since.
	Err error
	// Of a handler that ignored the end of its context: closed when it has ended at
	// last. nil for one that ended in time.
	Abandoned <-chan struct{}
}

// String is the outcome as one word: settled, released, canceled, lost.
func (o Outcome) String() string {
	switch {
	case o.Released:
		return "released"
	case errors.Is(o.Err, ErrCanceled):
		return "canceled"
	case o.Err != nil:
		return "lost"
	default:
		return "settled"
	}
}

// Run calls the handler until the claim has ended: again when the sender said
// more before the turn was settled. ctx ends early with one of the causes that
// the handler may see.
func (c Claim) Run(ctx context.Context) Outcome {
	claim := newClaim(c)
	for {
		t := claim.begin()
		returned := claim.call(ctx, t)
		outcome := claim.finish(ctx, t, returned)
		t.end()
		if outcome != nil {
			outcome.Abandoned = returned.abandoned
			return *outcome
		}
	}
}

// returned is how a handler ended.
type returned struct {
	err error
	// Closed when the handler that was left behind has ended.
	abandoned <-chan struct{}
}

// call runs the handler in a goroutine of its own, so that one which ignores
// its context can be left behind.
func (c *claim) call(ctx context.Context, t *Task) returned {
	done, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		err := error(&panicError{value: "the handler ended its goroutine"})
		defer func() { done <- err }()
		err = protect(func() error { return c.Agent.Handler.Handle(ctx, t) })
	}()
	select {
	case err := <-done:
		return returned{err: err}
	case <-ctx.Done():
	}
	timer := time.NewTimer(c.Patience)
	defer timer.Stop()
	select {
	case err := <-done:
		return returned{err: err}
	case <-timer.C:
		c.logger.ErrorContext(ctx, "handler goes on although its context has ended", "cause", context.Cause(ctx))
		return returned{err: context.Cause(ctx), abandoned: ended}
	}
}

// panicError is a handler that didn't return.
type panicError struct {
	value any
	stack []byte
}

func (p *panicError) Error() string { return fmt.Sprintf("panic: %v\n%s", p.value, p.stack) }

// protect makes a panic of f its error.
func protect(f func() error) (err error) { //nolint:nonamedreturns // a panic is a result too
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{value: p, stack: debug.Stack()}
		}
	}()
	return f()
}
