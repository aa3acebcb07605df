package hub_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"github.com/errandhq/errand/pkg/telemetry"
	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	notifierv1 "github.com/errandhq/errand/proto/gen/errand/notifier/v1"
	"github.com/errandhq/errand/services/notifier/internal/hub"
)

const hold = 50 * time.Millisecond

type bundle struct {
	*testing.T

	hub  *hub.Hub
	log  *log
	feed *feed
}

// play runs a test on a fake clock with a hub that compares every 4 s.
func play(t *testing.T, test func(*bundle)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, 1<<20)
		test(b)
	})
}

func setup(t *testing.T, buffer int) *bundle {
	t.Helper()
	b := &bundle{T: t, log: newLog(), feed: newFeed()}
	var err error
	b.hub, err = hub.New(hub.Config{
		Log: b.log, Feed: b.feed, Logger: slog.New(slog.DiscardHandler), Meter: telemetry.Disabled().Meter(),
		Compare: 4 * time.Second, StreamBuffer: buffer,
	})
	require.NoError(t, err)
	b.feed.hub = b.hub
	require.NoError(t, b.hub.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, b.hub.Stop(context.Background())) })
	return b
}

// watch opens a stream with one watch of id 1.
func (b *bundle) watch(taskID string, after int64) *hub.Stream {
	b.Helper()
	s := b.hub.Open()
	b.Cleanup(s.Close)
	require.NoError(b, s.Watch(1, tenant, taskID, after))
	return s
}

// next returns what is there without waiting for time to pass.
func (b *bundle) next(s *hub.Stream) (got []string) {
	b.Helper()
	for {
		synctest.Wait()
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		responses, err := s.Next(ctx)
		if err != nil {
			require.ErrorIs(b, err, context.Canceled)
			return got
		}
		for _, r := range responses {
			got = append(got, show(r))
		}
	}
}

func show(r *notifierv1.WatchResponse) string {
	switch kind := r.GetKind().(type) {
	case *notifierv1.WatchResponse_Watching:
		return fmt.Sprintf("watching %d", kind.Watching.GetPosition())
	case *notifierv1.WatchResponse_Gap:
		return fmt.Sprintf("gap %d", kind.Gap.GetPosition())
	case *notifierv1.WatchResponse_NotFound:
		return "not found"
	default:
		return strconv.FormatInt(r.GetEvent().GetVersion(), 10)
	}
}

func TestWatchStartsAtTheVersionOfTheStore(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		b.log.commitWorking("t", 3)
		s := b.watch("t", -1)
		require.Equal(b, []string{"watching 3"}, b.next(s))
		b.log.commit(working("t", 4))
		b.feed.publish(working("t", 4))
		require.Equal(b, []string{"4"}, b.next(s))
		require.Zero(b, b.log.reads())
	})
}

func TestWatchAfterAVersionReadsTheLogAtOnce(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		b.log.commitWorking("t", 3)
		s := b.watch("t", 1)
		require.Equal(b, []string{"watching 1", "2", "3"}, b.next(s))
	})
}

func TestWatchAfterAVersionToComeStartsAtTheStore(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		b.log.commitWorking("t", 3)
		s := b.watch("t", 99)
		require.Equal(b, []string{"watching 3"}, b.next(s))
	})
}

func TestWatchReadsALongLogInPages(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		b.log.commitWorking("t", 1000)
		s := b.watch("t", 0)
		require.Len(b, b.next(s), 1001)
		require.Equal(b, 4, b.log.reads())
	})
}

func TestUnknownTaskIsNotFound(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		s := b.watch("nope", -1)
		require.Equal(b, []string{"not found"}, b.next(s))
		require.Zero(b, b.feed.count("nope"))
	})
}

func TestNameThatNoTaskCanHaveIsNotFoundAndHoldsUpNobody(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		b.log.commitWorking("t", 1)
		s := b.watch("a.b", -1)
		require.NoError(b, s.Watch(2, tenant, "t", -1))
		require.ElementsMatch(b, []string{"not found", "watching 1"}, b.next(s))
	})
}

func TestClosedStreamBeginsNoWatch(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		s := b.watch("t", -1)
		s.Close()
		require.ErrorIs(b, s.Watch(2, tenant, "t", -1), hub.ErrStopped)
	})
}

func TestTaskOfAnotherTenantIsNotFoundAndDisturbsNobody(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		b.log.commitWorking("t", 1)
		s := b.watch("t", -1)
		require.NoError(b, s.Watch(2, "other", "t", -1))
		require.ElementsMatch(b, []string{"watching 1", "not found"}, b.next(s))
		b.log.commit(working("t", 2))
		b.feed.publish(working("t", 2))
		require.Equal(b, []string{"2"}, b.next(s))
	})
}

func TestDeletedTaskIsNotFoundAtTheNextComparison(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		b.log.commitWorking("t", 1)
		s := b.watch("t", -1)
		require.Equal(b, []string{"watching 1"}, b.next(s))
		b.log.set(func() { delete(b.log.events, "t") })
		pass(4 * time.Second)
		require.Equal(b, []string{"not found"}, b.next(s))
	})
}

func TestHoleIsHeldBeforeTheLogIsRead(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		b.log.commitWorking("t", 1)
		s := b.watch("t", -1)
		b.next(s)
		b.log.commit(working("t", 2), working("t", 3))
		b.feed.publish(working("t", 3))
		pass(hold - 1)
		require.Empty(b, b.next(s))
		require.Zero(b, b.log.reads())
		pass(1)
		require.Equal(b, []string{"2", "3"}, b.next(s))
	})
}

func TestLateEventClosesAHoleWithoutTheLog(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		b.log.commitWorking("t", 1)
		s := b.watch("t", -1)
		b.next(s)
		b.log.commit(working("t", 2), working("t", 3))
		b.feed.publish(working("t", 3), working("t", 3))
		pass(hold / 2)
		b.feed.publish(working("t", 2))
		require.Equal(b, []string{"2", "3"}, b.next(s))
		pass(hold)
		require.Empty(b, b.next(s))
		require.Zero(b, b.log.reads())
	})
}

func TestEventTooLargeToPublishIsReadFromTheLogAtOnce(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		b.log.commitWorking("t", 1)
		s := b.watch("t", -1)
		b.next(s)
		b.log.commit(working("t", 2))
		b.feed.publish(&eventv1.Event{Tenant: tenant, TaskId: "t", Version: 2})
		require.Equal(b, []string{"2"}, b.next(s))
	})
}

func TestLostTailIsFoundByTheComparison(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		b.log.commitWorking("t", 1)
		s := b.watch("t", -1)
		b.next(s)
		b.log.commit(working("t", 2))
		pass(4 * time.Second)
		require.Empty(b, b.next(s), "the event may be on its way")
		pass(hold)
		require.Equal(b, []string{"2"}, b.next(s))
	})
}

func TestInterruptionOfTheFeedComparesAtOnce(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		b.log.commitWorking("t", 1)
		s := b.watch("t", -1)
		b.next(s)
		b.log.commit(working("t", 2))
		b.feed.interrupted <- struct{}{}
		synctest.Wait()
		pass(hold)
		require.Equal(b, []string{"2"}, b.next(s))
	})
}

func TestGapWhenTheLogNoLongerHoldsTheNextVersion(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		b.log.commitWorking("t", 9)
		b.log.set(func() { b.log.expired = 5 })
		s := b.watch("t", 2)
		require.Equal(b, []string{"watching 2", "gap 9"}, b.next(s))
		b.log.commit(working("t", 10))
		b.feed.publish(working("t", 10))
		require.Equal(b, []string{"10"}, b.next(s))
	})
}

func TestTerminalEventEndsTheWatch(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		b.log.commitWorking("t", 1)
		s := b.watch("t", -1)
		b.next(s)
		require.Equal(b, 1, b.feed.count("t"))
		done := update("t", 2, a2apb.TaskState_TASK_STATE_COMPLETED)
		b.log.commit(done)
		b.feed.publish(done, done)
		require.Equal(b, []string{"2"}, b.next(s))
		require.Zero(b, b.feed.count("t"))
		s.Unwatch(1)
		require.NoError(b, s.Watch(1, tenant, "t", -1), "the id is free again")
		require.Equal(b, []string{"watching 2"}, b.next(s))
	})
}

func TestAllStreamsShareOneSubscription(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		b.log.commitWorking("t", 1)
		first, second := b.watch("t", -1), b.watch("t", 0)
		require.Equal(b, []string{"watching 1"}, b.next(first))
		require.Equal(b, []string{"watching 0", "1"}, b.next(second))
		require.Equal(b, 1, b.feed.count("t"))

		first.Close()
		b.log.commit(working("t", 2))
		b.feed.publish(working("t", 2))
		require.Equal(b, []string{"2"}, b.next(second), "closing one disturbs no other")
		second.Unwatch(1)
		synctest.Wait()
		require.Zero(b, b.feed.count("t"))
	})
}

func TestWatchesThatWaitTogetherShareACall(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		gate := make(chan struct{})
		b.log.set(func() { b.log.gate = gate })
		s := b.hub.Open()
		b.Cleanup(s.Close)
		for id := range uint64(100) {
			taskID := fmt.Sprintf("t%d", id)
			b.log.commitWorking(taskID, 1)
			require.NoError(b, s.Watch(id, tenant, taskID, -1))
			if id == 0 {
				synctest.Wait() // The first finds nobody waiting and goes alone.
			}
		}
		close(gate)
		require.Len(b, b.next(s), 100)
		require.Equal(b, 2, b.log.compares())
	})
}

func TestWatchBecomesLiveOnceTheStoreIsBack(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		b.log.commitWorking("t", 2)
		b.log.set(func() { b.log.fail = errors.New("down") })
		s := b.watch("t", 0)
		pass(time.Minute)
		require.Empty(b, b.next(s))
		b.log.set(func() { b.log.fail = nil })
		pass(5 * time.Second)
		require.Equal(b, []string{"watching 0", "1", "2"}, b.next(s))
	})
}

func TestWatchesThatEndBeforeTheStoreIsBackAreForgotten(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		b.log.set(func() { b.log.fail = errors.New("away") })
		for i := range 100 {
			b.watch(strconv.Itoa(i), -1).Close()
			pass(100 * time.Millisecond)
		}
		b.watch("t", -1)
		pass(10 * time.Second)
		b.log.set(func() { require.Equal(b, 1, b.log.asked) })
	})
}

func TestHoleIsFilledOnceTheStoreIsBack(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		b.log.commitWorking("t", 1)
		s := b.watch("t", -1)
		b.next(s)
		b.log.commit(working("t", 2), working("t", 3))
		b.log.set(func() { b.log.fail = errors.New("down") })
		b.feed.publish(working("t", 3))
		pass(time.Minute)
		require.Empty(b, b.next(s))
		b.log.set(func() { b.log.fail = nil })
		pass(5 * time.Second)
		require.Equal(b, []string{"2", "3"}, b.next(s))
	})
}

func TestSlowStreamMissesNothingAndHoldsUpNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, 1<<10)
		b.log.commitWorking("t", 1)
		b.log.commitWorking("u", 1)
		slow, quick := b.watch("t", -1), b.watch("t", -1)
		require.NoError(b, slow.Watch(2, tenant, "u", -1))
		b.next(quick)
		var got []string
		for v := int64(2); v <= 2000; v++ {
			b.log.commit(working("t", v), working("u", v))
			b.feed.publish(working("t", v))
			if v%2 == 0 {
				b.feed.publish(working("u", v))
			}
			if v%10 == 0 {
				got = append(got, b.next(quick)...)
			}
		}
		require.Len(b, got, 1999)
		// 2 watches, each from 2 to 2000, and that they became live.
		var late []string
		for range 2000 {
			late = append(late, b.next(slow)...)
			pass(hold)
		}
		require.Len(b, late, 2+2*1999)
	})
}

func TestWatchWithoutRoomWaitsAndReadsTheLogOnceThereIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, 1<<10)
		b.log.commitWorking("t", 1)
		b.log.commitWorking("u", 1)
		s := b.watch("t", -1)
		require.NoError(b, s.Watch(2, tenant, "u", -1))
		b.next(s)
		for v := int64(2); v <= 100; v++ {
			b.log.commit(working("u", v))
			b.feed.publish(working("u", v))
		}
		b.log.commit(working("t", 2), working("t", 3))
		b.feed.publish(working("t", 3))
		pass(time.Minute)
		require.Zero(b, b.log.reads(), "what could not be kept is not read")

		var got []string
		for range 10 {
			got = append(got, b.next(s)...)
			pass(hold)
		}
		require.Len(b, got, 99+2)
	})
}

func TestWhatAStreamDoesNotTakeIsNotKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, 1<<10)
		b.log.commitWorking("t", 1)
		s := b.watch("t", -1)
		b.next(s)
		for v := int64(2); v <= 100; v++ {
			b.log.commit(working("t", v))
			b.feed.publish(working("t", v))
		}
		require.Zero(b, b.log.reads())
		require.Len(b, b.next(s), 99)
		require.Positive(b, b.log.reads())
	})
}

func TestGapOfOneWatchIsNoneOfAWatchThatIsNotYetLive(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		b.log.commitWorking("t", 0)
		first := b.watch("t", 0)
		require.Equal(b, []string{"watching 0"}, b.next(first))
		gate := make(chan struct{})
		b.log.set(func() { b.log.gate, b.log.expired = gate, 2 })
		second := b.watch("t", -1)
		synctest.Wait()
		for v := int64(1); v <= 3; v++ {
			b.log.commit(working("t", v))
		}
		b.feed.publish(working("t", 3))
		pass(hold)
		require.Equal(b, []string{"gap 3"}, b.next(first))
		close(gate)
		require.Equal(b, []string{"watching 3"}, b.next(second))
	})
}

func TestLogThatIsBehindIsNoGap(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		b.log.commitWorking("t", 1)
		s := b.watch("t", -1)
		b.next(s)
		b.feed.publish(working("t", 3))
		pass(time.Second)
		require.Empty(b, b.next(s))
		b.log.commit(working("t", 2), working("t", 3))
		pass(5 * time.Second)
		require.Equal(b, []string{"2", "3"}, b.next(s))
	})
}

func TestWatchThatEndsWhileItIsSubscribedLeavesNothing(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		b.log.commitWorking("t", 1)
		b.feed.gate = make(chan struct{})
		s := b.watch("t", -1)
		synctest.Wait()
		s.Unwatch(1)
		close(b.feed.gate)
		synctest.Wait()
		require.Zero(b, b.feed.count("t"))
		require.Equal(b, 1, b.feed.subscribes)
		require.Empty(b, b.next(s))
	})
}

func TestStopEndsStreams(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		b.log.commitWorking("t", 1)
		s := b.watch("t", -1)
		b.next(s)
		failed := make(chan error)
		go func() {
			_, err := s.Next(context.Background())
			failed <- err
		}()
		synctest.Wait()
		require.NoError(b, b.hub.Stop(context.Background()))
		require.ErrorIs(b, <-failed, hub.ErrStopped)
		require.Zero(b, b.feed.count("t"))
	})
}

func TestAWatchIDIsUsedOnceAtATime(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		s := b.watch("t", -1)
		require.Error(b, s.Watch(1, tenant, "u", -1))
	})
}

// Whatever the feed loses, repeats or swaps, and wherever streams begin, each
// gets every version once and in order.
func TestAnyFeedGivesEveryStreamEachVersionOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			playRandom(setup(t, 400), rand.New(rand.NewPCG(seed, 2)))
		})
	}
}

func playRandom(b *bundle, rnd *rand.Rand) {
	const last = 60
	b.log.commitWorking("t", 1)
	streams, begins, got := []*hub.Stream{}, []int64{}, [][]string{}
	var pending []*eventv1.Event
	for v := int64(2); v <= last; v++ {
		if rnd.IntN(20) == 0 {
			begin := rnd.Int64N(v)
			streams, begins, got = append(streams, b.watch("t", begin)), append(begins, begin), append(got, nil)
		}
		state := a2apb.TaskState_TASK_STATE_WORKING
		if v == last {
			state = a2apb.TaskState_TASK_STATE_COMPLETED
		}
		e := update("t", v, state)
		b.log.commit(e)
		for range rnd.IntN(3) {
			pending = append(pending, e)
		}
		rnd.Shuffle(len(pending), func(i, j int) { pending[i], pending[j] = pending[j], pending[i] })
		n := rnd.IntN(len(pending) + 1)
		b.feed.publish(pending[:n]...)
		pending = pending[n:]
		for i, s := range streams {
			if rnd.IntN(4) == 0 {
				got[i] = append(got[i], b.next(s)...)
			}
		}
		pass(time.Duration(rnd.IntN(20)) * time.Millisecond)
	}
	for i, s := range streams {
		for range 20 {
			got[i] = append(got[i], b.next(s)...)
			pass(time.Second)
		}
		want := []string{fmt.Sprintf("watching %d", begins[i])}
		for v := begins[i] + 1; v <= last; v++ {
			want = append(want, strconv.FormatInt(v, 10))
		}
		require.Equal(b, want, got[i])
	}
	require.Zero(b, b.feed.count("t"))
}
