package batch_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/errandhq/errand/services/taskstore/internal/batch"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// item needs its keys for itself.
type item struct {
	name string
	keys []string
	size int
}

func (i item) Keys() []any {
	keys := make([]any, len(i.keys))
	for k, key := range i.keys {
		keys[k] = key
	}
	return keys
}

func (i item) Size() int { return i.size }

func named(names ...string) []item {
	items := make([]item, len(names))
	for i, name := range names {
		items[i] = item{name: name, keys: []string{name}, size: 1}
	}
	return items
}

// recorder is a flush that takes a second and remembers what it got.
type recorder struct {
	mu      sync.Mutex
	flushes []string
	running int
	most    int
	slow    string
	fail    func(names string) error
}

func (r *recorder) flush(ctx context.Context, items []item) error {
	names := ""
	for _, i := range items {
		names += i.name
	}
	r.mu.Lock()
	r.flushes = append(r.flushes, names)
	r.running++
	r.most = max(r.most, r.running)
	r.mu.Unlock()
	took := time.Second
	if names == r.slow {
		took *= 2
	}
	select {
	case <-time.After(took):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running--
	if r.fail != nil {
		return r.fail(names)
	}
	return nil
}

var errSplit = errors.New("worth a split")

func options() batch.Options {
	return batch.Options{
		Parallel: 1, Items: 4, Bytes: 100, Waiting: 20, WaitingBytes: 2000, Timeout: time.Minute,
		Split: func(err error) bool { return errors.Is(err, errSplit) },
	}
}

// test runs a case in a bubble of virtual time and closes the batcher.
func test(t *testing.T, o batch.Options, run func(t *testing.T, b *batch.Batcher[item], r *recorder)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		b := batch.New(o, r.flush)
		run(t, b, r)
		b.Close()
	})
}

// do hands items over in the background, one call each, in their order.
func do(t *testing.T, b *batch.Batcher[item], items ...item) {
	t.Helper()
	for _, i := range items {
		go b.Do(t.Context(), i)
		synctest.Wait()
	}
}

func TestACallThatFindsNothingRunningIsFlushedAtOnce(t *testing.T) {
	t.Parallel()
	test(t, options(), func(t *testing.T, b *batch.Batcher[item], r *recorder) {
		began := time.Now()
		require.Equal(t, []error{nil}, b.Do(t.Context(), named("a")...))
		require.Equal(t, time.Second, time.Since(began))
		require.Equal(t, []string{"a"}, r.flushes)
	})
}

func TestCallsThatComeWhileAFlushRunsWaitTogether(t *testing.T) {
	t.Parallel()
	test(t, options(), func(t *testing.T, b *batch.Batcher[item], r *recorder) {
		do(t, b, named("a", "b", "c", "d")...)
		require.Equal(t, 3, b.Waiting())
		b.Close()
		require.Equal(t, []string{"a", "bcd"}, r.flushes)
	})
}

func TestAFlushTakesNoMoreThanItsBounds(t *testing.T) {
	t.Parallel()
	test(t, options(), func(t *testing.T, b *batch.Batcher[item], r *recorder) {
		do(t, b, named("a", "b", "c", "d", "e", "f")...)
		do(t, b, item{name: "G", size: 99}, item{name: "H", size: 1000}, item{name: "i", size: 1})
		b.Close()
		require.Equal(t, []string{"a", "bcde", "fG", "H", "i"}, r.flushes, "four items, a hundred bytes, or one that is larger")
	})
}

func TestItemsThatShareAKeyKeepTheirOrderAndStayApart(t *testing.T) {
	t.Parallel()
	test(t, options(), func(t *testing.T, b *batch.Batcher[item], r *recorder) {
		do(t, b, item{name: "a"},
			item{name: "1", keys: []string{"x"}},
			item{name: "2", keys: []string{"x", "y"}},
			item{name: "3", keys: []string{"y"}}, // behind 2, which waits for x
			item{name: "4", keys: []string{"z"}})
		b.Close()
		require.Equal(t, []string{"a", "14", "2", "3"}, r.flushes)
	})
}

func TestFlushesRunAtTheSameTimeUpToTheirNumberAndShareNoKey(t *testing.T) {
	t.Parallel()
	o := options()
	o.Parallel = 2
	test(t, o, func(t *testing.T, b *batch.Batcher[item], r *recorder) {
		r.slow = "3"
		do(t, b, item{name: "1", keys: []string{"x"}}, item{name: "2", keys: []string{"x"}}, item{name: "3"}, item{name: "4"})
		b.Close()
		require.Equal(t, []string{"1", "3", "24"}, r.flushes)
		require.Equal(t, 2, r.most)
	})
}

func TestAFailedFlushIsTriedOneByOne(t *testing.T) {
	t.Parallel()
	test(t, options(), func(t *testing.T, b *batch.Batcher[item], r *recorder) {
		r.fail = func(names string) error {
			if names == "abc" || names == "b" {
				return errSplit
			}
			return nil
		}
		require.Equal(t, []error{nil, errSplit, nil}, b.Do(t.Context(), named("a", "b", "c")...))
		require.Equal(t, []string{"abc", "a", "b", "c"}, r.flushes)
	})
}

func TestOneThatFailsSlowlyHoldsNobodyUpAfterTheSplit(t *testing.T) {
	t.Parallel()
	o := options()
	o.Parallel = 2
	test(t, o, func(t *testing.T, b *batch.Batcher[item], r *recorder) {
		r.slow = "b"
		r.fail = func(names string) error {
			if names == "abc" || names == "b" {
				return errSplit
			}
			return nil
		}
		began := time.Now()
		var calls sync.WaitGroup
		calls.Go(func() { b.Do(t.Context(), named("a", "b", "c")...) })
		synctest.Wait()
		time.Sleep(1500 * time.Millisecond) // virtual: the flush of all three has failed
		calls.Go(func() { b.Do(t.Context(), named("d", "e")...) })
		calls.Wait()
		require.ElementsMatch(t, []string{"abc", "a", "b", "c", "de"}, r.flushes)
		require.Equal(t, 4*time.Second, time.Since(began), "a, c and then d and e go past b, which takes twice as long")
	})
}

func TestAFlushThatMayHaveCommittedIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	test(t, options(), func(t *testing.T, b *batch.Batcher[item], r *recorder) {
		lost := errors.New("connection lost")
		r.fail = func(string) error { return lost }
		require.Equal(t, []error{lost, lost}, b.Do(t.Context(), named("a", "b")...))
		require.Len(t, r.flushes, 1)
	})
}

func TestAPanicFailsTheFlushAlone(t *testing.T) {
	t.Parallel()
	test(t, options(), func(t *testing.T, b *batch.Batcher[item], r *recorder) {
		r.fail = func(string) error { panic("poison") }
		require.ErrorContains(t, b.Do(t.Context(), named("a")...)[0], "poison")
		r.fail = nil
		require.NoError(t, b.Do(t.Context(), named("b")...)[0])
	})
}

func TestWhoGivesUpBeforeTheFlushTakesItsItemBack(t *testing.T) {
	t.Parallel()
	test(t, options(), func(t *testing.T, b *batch.Batcher[item], r *recorder) {
		do(t, b, named("a")...)
		ctx, cancel := context.WithCancel(t.Context())
		var got []error
		go func() { got = b.Do(ctx, named("b")...) }()
		do(t, b, named("c")...)
		cancel()
		synctest.Wait()
		require.Equal(t, []error{context.Canceled}, got)
		b.Close()
		require.Equal(t, []string{"a", "c"}, r.flushes)
	})
}

func TestWhoGivesUpDuringTheFlushDoesNotStopIt(t *testing.T) {
	t.Parallel()
	test(t, options(), func(t *testing.T, b *batch.Batcher[item], r *recorder) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		finished := false
		r.fail = func(string) error { finished = true; return nil }
		require.ErrorIs(t, b.Do(ctx, named("a")...)[0], context.DeadlineExceeded)
		b.Close()
		require.True(t, finished)
	})
}

func TestAFlushEndsWithItsOwnTimeout(t *testing.T) {
	t.Parallel()
	o := options()
	o.Timeout = time.Millisecond
	test(t, o, func(t *testing.T, b *batch.Batcher[item], _ *recorder) {
		require.ErrorIs(t, b.Do(t.Context(), named("a")...)[0], context.DeadlineExceeded)
	})
}

func TestTooManyWaitingItemsAreRefused(t *testing.T) {
	t.Parallel()
	test(t, options(), func(t *testing.T, b *batch.Batcher[item], _ *recorder) {
		do(t, b, named("a")...)
		for i := range 20 {
			do(t, b, named(fmt.Sprint(i))...)
		}
		require.Equal(t, []error{batch.ErrFull}, b.Do(t.Context(), named("z")...))
	})
}

func TestItemsThatAreTooLargeToWaitAreRefused(t *testing.T) {
	t.Parallel()
	test(t, options(), func(t *testing.T, b *batch.Batcher[item], r *recorder) {
		do(t, b, item{name: "a", size: 5000}, item{name: "b", size: 5000}) // one runs, one waits alone
		require.Equal(t, []error{batch.ErrFull}, b.Do(t.Context(), item{name: "c", size: 1}))
		time.Sleep(time.Second)
		synctest.Wait()
		do(t, b, item{name: "d", size: 1999}, item{name: "e", size: 1})
		require.Equal(t, []error{batch.ErrFull}, b.Do(t.Context(), item{name: "f", size: 1}))
		b.Close()
		require.Equal(t, []string{"a", "b", "d", "e"}, r.flushes)
	})
}

func TestWhoLeavesMakesRoom(t *testing.T) {
	t.Parallel()
	test(t, options(), func(t *testing.T, b *batch.Batcher[item], r *recorder) {
		do(t, b, named("a")...)
		ctx, cancel := context.WithCancel(t.Context())
		go b.Do(ctx, item{name: "left", size: 2000})
		synctest.Wait()
		cancel()
		time.Sleep(time.Second)
		synctest.Wait()
		do(t, b, item{name: "b", size: 1}, item{name: "c", size: 2000})
		b.Close()
		require.Equal(t, []string{"a", "b", "c"}, r.flushes)
	})
}

func TestAfterCloseNothingIsTakenAndWhatWaitedIsFlushed(t *testing.T) {
	t.Parallel()
	test(t, options(), func(t *testing.T, b *batch.Batcher[item], r *recorder) {
		do(t, b, named("a", "b")...)
		b.Close()
		require.Equal(t, []string{"a", "b"}, r.flushes)
		require.Equal(t, []error{batch.ErrClosed}, b.Do(t.Context(), named("c")...))
	})
}

func TestAFlushKnowsItsCallers(t *testing.T) {
	t.Parallel()
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		var seen []any
		release := make(chan struct{})
		b := batch.New(options(), func(ctx context.Context, _ []item) error {
			<-release
			seen = nil
			for _, caller := range batch.Callers(ctx) {
				seen = append(seen, caller.Value(key{}))
			}
			return nil
		})
		for i := range 3 {
			go b.Do(context.WithValue(t.Context(), key{}, i), named(fmt.Sprint(i))...)
			synctest.Wait()
		}
		close(release)
		b.Close()
		require.Equal(t, []any{1, 2}, seen)
		require.Nil(t, batch.Callers(t.Context()))
	})
}
