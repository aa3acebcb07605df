package role_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/errandhq/errand/services/taskstore/internal/role"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// roles keeps one role in memory.
type roles struct {
	mu     sync.Mutex
	holder string
	until  time.Time
	down   bool
}

func (r *roles) HoldRole(_ context.Context, _, holder string, now, until time.Time) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down {
		return false, errors.New("down")
	}
	if r.holder != holder && now.Before(r.until) {
		return false, nil
	}
	r.holder, r.until = holder, until
	return true, nil
}

func (r *roles) DropRole(_ context.Context, _, holder string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.holder == holder {
		r.holder, r.until = "", time.Time{}
	}
	return nil
}

func (r *roles) set(down bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = down
}

// worker counts its work, and how often somebody else worked at the same time.
type worker struct {
	mu      *sync.Mutex
	busy    *int
	overlap *int
	done    int
}

func (w *worker) work(ctx context.Context) time.Duration {
	w.mu.Lock()
	*w.busy++
	*w.overlap = max(*w.overlap, *w.busy)
	w.done++
	w.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-time.After(3 * time.Second):
	}
	w.mu.Lock()
	*w.busy--
	w.mu.Unlock()
	return time.Second
}

func newWorkers(n int) []*worker {
	var mu sync.Mutex
	var busy, overlap int
	workers := make([]*worker, n)
	for i := range workers {
		workers[i] = &worker{mu: &mu, busy: &busy, overlap: &overlap}
	}
	return workers
}

func options(keeper role.Keeper, holder string) role.Options {
	return role.Options{
		Role: "reaper", Holder: holder, Keeper: keeper, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	}
}

func TestOneWorksAtATimeAndAnotherTakesOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		keeper := &roles{}
		workers := newWorkers(3)
		a := role.NewLoop(options(keeper, "a"), workers[0].work)
		b := role.NewLoop(options(keeper, "b"), workers[1].work)
		require.NoError(t, a.Start(t.Context()))
		synctest.Wait()
		require.NoError(t, b.Start(t.Context()))
		<-time.After(time.Minute)
		synctest.Wait()
		require.Positive(t, workers[0].done)
		require.Zero(t, workers[1].done)

		require.NoError(t, a.Stop(t.Context()))
		<-time.After(2 * time.Second)
		synctest.Wait()
		require.Positive(t, workers[1].done, "a role that is given back is taken at once")
		require.NoError(t, b.Stop(t.Context()))
		require.Equal(t, 1, *workers[0].overlap)
	})
}

func TestWorkThatIsSlowGoesOnWhileTheRoleIsRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		keeper := &roles{}
		var ends []error
		slow := role.NewLoop(options(keeper, "a"), func(ctx context.Context) time.Duration {
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Second):
			}
			ends = append(ends, context.Cause(ctx))
			return time.Second
		})
		workers := newWorkers(1)
		other := role.NewLoop(options(keeper, "b"), workers[0].work)
		require.NoError(t, slow.Start(t.Context()))
		synctest.Wait()
		require.NoError(t, other.Start(t.Context()))
		<-time.After(10 * time.Second)
		keeper.set(true) // for less than the role can be trusted
		<-time.After(time.Second)
		keeper.set(false)
		<-time.After(25 * time.Second)
		synctest.Wait()
		require.Equal(t, []error{nil}, ends)
		require.Zero(t, workers[0].done)
		require.NoError(t, slow.Stop(t.Context()))
		require.NoError(t, other.Stop(t.Context()))
	})
}

func TestWorkThatNeverEndsIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pieces := 0
		stuck := role.NewLoop(options(&roles{}, "a"), func(ctx context.Context) time.Duration {
			pieces++
			<-ctx.Done()
			return 0
		})
		require.NoError(t, stuck.Start(t.Context()))
		<-time.After(time.Minute + time.Second)
		synctest.Wait()
		require.Equal(t, 3, pieces)
		require.NoError(t, stuck.Stop(t.Context()))
	})
}

func TestWorkEndsBeforeTheTermDoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		keeper := &roles{}
		var longest time.Duration
		stuck := role.NewLoop(options(keeper, "a"), func(ctx context.Context) time.Duration {
			keeper.set(true)
			began := time.Now()
			<-ctx.Done()
			longest = time.Since(began)
			return 0
		})
		workers := newWorkers(1)
		other := role.NewLoop(options(keeper, "b"), workers[0].work)
		require.NoError(t, stuck.Start(t.Context()))
		synctest.Wait()
		require.NoError(t, other.Start(t.Context()))
		<-time.After(9 * time.Second)
		synctest.Wait()
		require.Positive(t, longest)
		require.Less(t, longest, 10*time.Second)
		keeper.set(false)
		<-time.After(3 * time.Second)
		require.NoError(t, stuck.Stop(t.Context()))
		require.NoError(t, other.Stop(t.Context()))
	})
}
