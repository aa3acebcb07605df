// Package testkit gives tests the real things: Postgres, NATS with JetStream, and
// gRPC without ports. A thing that can't be had fails the test; nothing skips.
package testkit

import (
	"log/slog"
	"sync"
	"testing"
)

// Logger returns a logger that writes to the test's output, from debug up. Lines
// that come after the test has ended are dropped.
func Logger(t testing.TB) *slog.Logger {
	t.Helper()
	out := &testOutput{t: t}
	t.Cleanup(out.close)
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// testOutput guards the output of a test against writers that outlive it.
type testOutput struct {
	mu     sync.Mutex
	t      testing.TB
	closed bool
}

func (o *testOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return len(p), nil
	}
	return o.t.Output().Write(p)
}

func (o *testOutput) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
}
