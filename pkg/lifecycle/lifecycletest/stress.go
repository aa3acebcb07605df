// Package lifecycletest holds the test that every lifecycle.Service must pass.
package lifecycletest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/lifecycle"
)

const (
	rounds   = 30
	patience = 30 * time.Second
)

// Stress holds a service against the contract of lifecycle.Service: Stop is
// safe before Start, during it, twice and from many goroutines; a service that
// was stopped isn't ready and doesn't start again. Each round takes a new
// service. What a stopped service leaves running is for the leak check of the
// package's TestMain to find.
func Stress(t *testing.T, newService func(t *testing.T) lifecycle.Service) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	t.Run("a start and a stop", func(t *testing.T) {
		s := newService(t)
		require.Error(t, s.Ready(), "ready before start")
		require.NoError(t, s.Start(ctx))
		require.NoError(t, s.Stop(ctx))
		requireStopped(ctx, t, s)
	})
	t.Run("a stop before the start", func(t *testing.T) {
		s := newService(t)
		require.NoError(t, s.Stop(ctx))
		requireStopped(ctx, t, s)
	})
	t.Run("stops during the start", func(t *testing.T) {
		for range rounds {
			s := newService(t)
			race(ctx, s)
			require.NoError(t, ctx.Err(), "a start or stop did not return in time")
			require.NoError(t, s.Stop(ctx))
			requireStopped(ctx, t, s)
		}
	})
}

func race(ctx context.Context, s lifecycle.Service) {
	var all sync.WaitGroup
	// Start may lose against Stop: its error is part of the contract.
	all.Go(func() { _ = s.Start(ctx) })
	for range 3 {
		all.Go(func() { _ = s.Stop(ctx) })
		all.Go(func() { _ = s.Ready() })
	}
	all.Wait()
}

func requireStopped(ctx context.Context, t *testing.T, s lifecycle.Service) {
	t.Helper()
	require.NoError(t, s.Stop(ctx), "a second stop")
	require.Error(t, s.Ready(), "ready after stop")
	require.Error(t, s.Start(ctx), "started again after stop")
}
