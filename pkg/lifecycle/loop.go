package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Loop runs one function in the background between Start and Stop. It is an
// Ending service: a function that returns before it was told to ends the loop,
// with or without an error. The zero value is not usable.
type Loop struct {
	run  func(ctx context.Context) error
	done chan struct{}

	mu     sync.Mutex
	cancel context.CancelCauseFunc // nil before Start
	closed bool                    // Stop was called
	err    error
}

// NewLoop returns a loop around run, which must return soon after its context
// has ended. The context carries the values of Start's context and ends only by
// Stop, with ErrStopped as its cause.
func NewLoop(run func(ctx context.Context) error) *Loop {
	return &Loop{run: run, done: make(chan struct{})}
}

// Start starts the function; a second Start does nothing.
func (l *Loop) Start(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrStopped
	}
	if l.cancel != nil {
		return nil
	}
	runCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	l.cancel = cancel
	go l.loop(runCtx)
	return nil
}

func (l *Loop) loop(ctx context.Context) {
	defer close(l.done)
	err := l.run(ctx)

	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel(ErrStopped)
	switch stopped := l.closed; {
	case stopped && (err == nil || errors.Is(err, ErrStopped) || errors.Is(err, context.Canceled)):
	case err == nil:
		l.err = errors.New("ended without being told to")
	default:
		l.err = err
	}
}

// Stop cancels the function's context and waits until it has returned or ctx
// ends. It gives the function's own error, unless that is the cancellation.
func (l *Loop) Stop(ctx context.Context) error {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		if l.cancel == nil {
			close(l.done)
		}
	}
	if l.cancel != nil {
		l.cancel(ErrStopped)
	}
	l.mu.Unlock()

	select {
	case <-l.done:
		return l.Err()
	default:
	}
	select {
	case <-l.done:
		return l.Err()
	case <-ctx.Done():
		return fmt.Errorf("wait for a background loop to end: %w", context.Cause(ctx))
	}
}

// Ready tells whether the function is running.
func (l *Loop) Ready() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return ErrStopped
	case l.err != nil:
		return l.err
	case l.cancel == nil:
		return ErrNotRunning
	}
	return nil
}

// Done is closed when the function has returned, or will never run.
func (l *Loop) Done() <-chan struct{} { return l.done }

// Err tells why the loop ended by itself; nil while it runs and after a clean stop.
func (l *Loop) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
