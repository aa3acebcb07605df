package batch_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/errandhq/errand/services/executor/internal/batch"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func config(call func(context.Context, []int) ([]int, error)) batch.Config[int, int] {
	return batch.Config[int, int]{
		Call: call, Flights: 1, Timeout: time.Minute, Count: 10, Size: 100, SizeOf: func(q int) int { return q },
	}
}

func TestGroup_IdleCallGoesAloneAndLaterOnesTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var batches [][]int
		landed := make(chan struct{})
		g := batch.New(config(func(_ context.Context, q []int) ([]int, error) {
			batches = append(batches, q)
			if len(batches) == 1 {
				<-landed
			}
			answers := make([]int, len(q))
			for i := range q {
				answers[i] = q[i] * 2
			}
			return answers, nil
		}))
		var callers sync.WaitGroup
		for i := 1; i <= 5; i++ {
			callers.Go(func() {
				got, err := g.Do(t.Context(), i)
				require.NoError(t, err)
				require.Equal(t, 2*i, got)
			})
			synctest.Wait()
		}
		close(landed)
		callers.Wait()
		require.Equal(t, [][]int{{1}, {2, 3, 4, 5}}, batches)
	})
}

func TestGroup_BatchesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var batches [][]int
		landed := make(chan struct{})
		g := batch.New(config(func(_ context.Context, q []int) ([]int, error) {
			batches = append(batches, q)
			<-landed
			return make([]int, len(q)), nil
		}))
		var callers sync.WaitGroup
		for _, size := range []int{1, 60, 30, 20, 500, 7} {
			callers.Go(func() { _, _ = g.Do(t.Context(), size) })
			synctest.Wait()
		}
		close(landed)
		callers.Wait()
		require.Equal(t, [][]int{{1}, {60, 30}, {20}, {500}, {7}}, batches)
	})
}

func TestGroup_FailureIsEveryonesAndACallerMayLeave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		landed := make(chan struct{})
		broken := errors.New("broken")
		g := batch.New(config(func(ctx context.Context, _ []int) ([]int, error) {
			<-landed
			require.NoError(t, ctx.Err(), "a batch doesn't end with a caller")
			return nil, broken
		}))
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := g.Do(ctx, 1)
			left <- err
		}()
		synctest.Wait()
		stayed := make(chan error)
		go func() {
			_, err := g.Do(t.Context(), 2)
			stayed <- err
		}()
		cancel()
		require.ErrorIs(t, <-left, context.Canceled)
		close(landed)
		require.ErrorIs(t, <-stayed, broken)
	})
}
