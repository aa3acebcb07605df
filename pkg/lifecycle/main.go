package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// SignalError is the cause with which Main ends the context of its function.
type SignalError struct{ Signal os.Signal }

func (e *SignalError) Error() string { return "received " + e.Signal.String() }

// Main runs a command and returns the process's exit code. The first SIGINT or
// SIGTERM ends run's context, with a *SignalError as the cause; on the second
// one Main returns without waiting for run. The code is 0 when run succeeded, 1
// when it failed (the error is printed), and 128 plus the signal's number when
// it gave up because of a signal.
func Main(run func(ctx context.Context) error) int {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	return runMain(signals, os.Stderr, run)
}

func runMain(signals <-chan os.Signal, stderr io.Writer, run func(ctx context.Context) error) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	result := make(chan error, 1)
	go func() { result <- run(ctx) }()

	var first os.Signal
	for {
		select {
		case err := <-result:
			return exitCode(stderr, err, first)
		case s := <-signals:
			if first != nil {
				return signalCode(s)
			}
			first = s
			cancel(&SignalError{Signal: s})
		}
	}
}

func exitCode(stderr io.Writer, err error, received os.Signal) int {
	if err == nil {
		return 0
	}
	var byCause *SignalError
	if received != nil && (errors.Is(err, context.Canceled) || errors.As(err, &byCause)) {
		return signalCode(received)
	}
	// The exit code tells the failure too; there is nowhere else to report to.
	_, _ = fmt.Fprintf(stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
	return 1
}

func signalCode(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return 1
}
