package clock_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/errandhq/errand/services/taskstore/internal/clock"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// database is a database's clock.
type database struct {
	mu    sync.Mutex
	ahead time.Duration
	takes time.Duration
	away  bool
}

func (d *database) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

func (d *database) now(ctx context.Context) (time.Time, error) {
	d.mu.Lock()
	ahead, takes, away := d.ahead, d.takes, d.away
	d.mu.Unlock()
	time.Sleep(takes / 2)
	if away {
		return time.Time{}, errors.New("away")
	}
	now := time.Now().Add(ahead)
	time.Sleep(takes / 2)
	return now, ctx.Err()
}

func inBubble(t *testing.T, d *database, test func(t *testing.T, c *clock.Clock)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clock.New(d.now, slog.New(slog.DiscardHandler))
		require.NoError(t, c.Start(t.Context()))
		test(t, c)
		require.NoError(t, c.Stop(t.Context()))
	})
}

func requireNow(t *testing.T, c *clock.Clock, ahead time.Duration) {
	t.Helper()
	require.WithinDuration(t, time.Now().Add(ahead), c.Now(), time.Millisecond)
}

func TestClock_IsTheDatabasesAndNotTheProcesss(t *testing.T) {
	d := &database{ahead: -10 * time.Minute, takes: 80 * time.Millisecond}
	inBubble(t, d, func(t *testing.T, c *clock.Clock) {
		require.NoError(t, c.Ready())
		requireNow(t, c, -10*time.Minute)
		time.Sleep(time.Hour)
		requireNow(t, c, -10*time.Minute)
		require.Zero(t, c.Jumped(), "that the process has another time is no jump")
	})
}

func TestClock_DriftIsFollowedAndAJumpIsTold(t *testing.T) {
	d := &database{}
	inBubble(t, d, func(t *testing.T, c *clock.Clock) {
		d.set(func() { d.ahead = 500 * time.Millisecond })
		time.Sleep(1500 * time.Millisecond)
		requireNow(t, c, d.ahead)
		require.Zero(t, c.Jumped())
		for _, ahead := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
			d.set(func() { d.ahead = ahead })
			time.Sleep(time.Second)
			requireNow(t, c, ahead)
			require.WithinDuration(t, time.Now(), c.Jumped(), time.Second)
			time.Sleep(time.Minute)
			require.Greater(t, time.Since(c.Jumped()), 50*time.Second, "told once")
		}
	})
}

func TestClock_GoesOnWhileTheDatabaseIsAway(t *testing.T) {
	d := &database{ahead: time.Hour}
	inBubble(t, d, func(t *testing.T, c *clock.Clock) {
		d.set(func() { d.away = true })
		time.Sleep(time.Hour)
		require.NoError(t, c.Ready())
		requireNow(t, c, time.Hour)
	})
}

func TestClock_IsNotReadyUntilItWasSetAndThenSoon(t *testing.T) {
	d := &database{ahead: time.Hour, away: true}
	inBubble(t, d, func(t *testing.T, c *clock.Clock) {
		time.Sleep(time.Minute)
		require.Error(t, c.Ready())
		requireNow(t, c, 0)
		d.set(func() { d.away = false })
		time.Sleep(200 * time.Millisecond)
		require.NoError(t, c.Ready())
		requireNow(t, c, time.Hour)
	})
}

func TestClock_AReadingThatTookLongChangesNothing(t *testing.T) {
	d := &database{}
	inBubble(t, d, func(t *testing.T, c *clock.Clock) {
		d.set(func() { d.ahead, d.takes = time.Hour, time.Second })
		time.Sleep(time.Minute)
		requireNow(t, c, 0)
		require.Zero(t, c.Jumped())
	})
}
