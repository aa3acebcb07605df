// Package lifecycle starts the parts of a process in order and stops them in
// reverse. Mains and the all-in-one build a Group; background loops are Loops.
package lifecycle

import (
	"context"
	"errors"
)

// ErrStopped is the cause with which a Loop's context ends when it is stopped,
// and what Start answers after Stop: nothing runs twice.
var ErrStopped = errors.New("stopped")

// ErrNotRunning is what Ready answers before Start has succeeded.
var ErrNotRunning = errors.New("not running")

// Service is a part of a process that runs between Start and Stop.
//
// Start returns when the service serves; its context bounds the start only, not
// the service's life. Stop ends the service and waits for it: gracefully while
// its context lasts, then hard, returning the context's error if anything was
// cut. Stop may be called twice, by several goroutines, during Start and before
// it; a service that was stopped does not start again. Ready tells why the
// service can't do its job right now; nil means that it can.
type Service interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	Ready() error
}

// Ending is a Service that may end by itself. Done is closed when it has; Err
// then tells why. A Group that holds one stops everything when it ends.
type Ending interface {
	Service
	Done() <-chan struct{}
	Err() error
}
