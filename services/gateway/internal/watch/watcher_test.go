package watch_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	"github.com/errandhq/errand/services/gateway/internal/watch"
)

type bundle struct {
	*testing.T

	watcher  *watch.Watcher
	notifier *fakeNotifier
}

func play(t *testing.T, test func(*bundle)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bundle{T: t, notifier: &fakeNotifier{}}
		b.watcher = watch.New(watch.Config{
			Client: b.notifier, Logger: slog.New(slog.DiscardHandler), Buffer: 8,
		})
		require.NoError(t, b.watcher.Start(t.Context()))
		t.Cleanup(func() { require.NoError(t, b.watcher.Stop(context.Background())) })
		synctest.Wait()
		test(b)
	})
}

type joined struct {
	*watch.Subscription

	err error
}

// start calls Watch in the background.
func (b *bundle) start(after int64) <-chan joined {
	result := make(chan joined, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		s, err := b.watcher.Watch(ctx, tenant, "t", after)
		result <- joined{s, err}
	}()
	synctest.Wait()
	return result
}

func (b *bundle) take(result <-chan joined) *watch.Subscription {
	b.Helper()
	got := <-result
	require.NoError(b, got.err)
	return got.Subscription
}

// live subscribes on a task that nobody watches yet, at position.
func (b *bundle) live(position int64) (*watch.Subscription, *stream, uint64) {
	b.Helper()
	result := b.start(-1)
	s := b.notifier.current()
	requests := s.sent()
	require.Len(b, requests, 1)
	s.watching(requests[0].GetWatchId(), position)
	return b.take(result), s, requests[0].GetWatchId()
}

// read returns what the subscription gives now: versions, "resync", or how it ended.
func (b *bundle) read(s *watch.Subscription) string {
	var got []string
	for {
		synctest.Wait()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		item, err := s.Next(ctx)
		switch {
		case errors.Is(err, context.Canceled):
			return strings.Join(got, " ")
		case errors.Is(err, io.EOF):
			return strings.Join(append(got, "end"), " ")
		case err != nil:
			return strings.Join(append(got, err.Error()), " ")
		case item.Resync:
			got = append(got, "resync")
		default:
			got = append(got, strconv.FormatInt(item.Event.GetVersion(), 10))
		}
	}
}

func TestSubscriptionIsLiveAtTheNotifiersPosition(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		s, stream, id := b.live(4)
		require.EqualValues(b, 4, s.Position())
		stream.events(id, working(5), working(6))
		require.Equal(b, "5 6", b.read(s))
	})
}

func TestAskedPositionReachesTheNotifier(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		result := b.start(7)
		stream := b.notifier.current()
		request := stream.sent()[0]
		require.EqualValues(b, 7, request.GetWatch().GetAfter())
		require.Equal(b, tenant, request.GetWatch().GetTenant())
		stream.watching(request.GetWatchId(), 7)
		require.EqualValues(b, 7, b.take(result).Position())
	})
}

func TestSubscribersOfATaskShareOneWatch(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		first, stream, id := b.live(1)
		stream.events(id, working(2))
		require.Equal(b, "2", b.read(first))
		second := b.take(b.start(-1))
		require.EqualValues(b, 2, second.Position())
		ahead := b.take(b.start(3))
		require.EqualValues(b, 3, ahead.Position())
		require.Empty(b, stream.sent())

		stream.events(id, working(3), working(4))
		require.Equal(b, "3 4", b.read(first))
		require.Equal(b, "3 4", b.read(second))
		require.Equal(b, "4", b.read(ahead))
	})
}

func TestLastSubscriberEndsTheWatch(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		first, stream, id := b.live(1)
		second := b.take(b.start(-1))
		first.Close()
		require.Empty(b, stream.sent())
		second.Close()
		second.Close()
		requests := stream.sent()
		require.Len(b, requests, 1)
		require.NotNil(b, requests[0].GetUnwatch())
		require.Equal(b, id, requests[0].GetWatchId())
	})
}

func TestLateResponsesOfAnEndedWatchAreNotTakenForTheNewOne(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		first, stream, id := b.live(1)
		first.Close()
		stream.sent()
		result := b.start(-1)
		next := stream.sent()[0].GetWatchId()
		require.NotEqual(b, id, next)
		stream.events(id, working(2))
		stream.notFound(id)
		synctest.Wait()
		require.Empty(b, result)
		stream.watching(next, 2)
		stream.events(next, working(3))
		require.Equal(b, "3", b.read(b.take(result)))
	})
}

func TestTerminalEventEndsTheSubscriptionWithoutUnwatch(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		s, stream, id := b.live(1)
		stream.events(id, update(2, a2apb.TaskState_TASK_STATE_COMPLETED))
		require.Equal(b, "2 end", b.read(s))
		s.Close()
		require.Empty(b, stream.sent())
	})
}

func TestUnknownTaskFails(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		result := b.start(-1)
		stream := b.notifier.current()
		stream.notFound(stream.sent()[0].GetWatchId())
		require.ErrorIs(b, (<-result).err, watch.ErrNotFound)
	})
}

func TestNameThatCannotBeSentIsNotFound(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		for _, names := range [][2]string{{tenant, "t\xff"}, {"\xff", "t"}} {
			_, err := b.watcher.Watch(b.Context(), names[0], names[1], -1)
			require.ErrorIs(b, err, watch.ErrNotFound)
		}
		require.Empty(b, b.notifier.current().sent())
	})
}

func TestDeletedTaskEndsTheSubscription(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		s, stream, id := b.live(1)
		stream.notFound(id)
		require.Equal(b, watch.ErrNotFound.Error(), b.read(s))
	})
}

func TestOverflowAndGapLeadToAResync(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		slow, stream, id := b.live(0)
		quick := b.take(b.start(-1))
		for v := int64(1); v <= 20; v++ {
			stream.events(id, working(v))
			require.Equal(b, strconv.FormatInt(v, 10), b.read(quick))
		}
		require.Equal(b, "resync", b.read(slow))
		stream.events(id, working(21))
		require.Equal(b, "21", b.read(slow))

		stream.gap(id, 30)
		stream.events(id, working(31))
		require.Equal(b, "resync", b.read(slow), "31 is in the snapshot that follows")
		stream.events(id, working(32))
		require.Equal(b, "32", b.read(slow))
	})
}

func TestOverflowByBytes(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		s, stream, id := b.live(0)
		big := func(version int64, bytes int) *eventv1.Event {
			e := working(version)
			e.GetStatusUpdate().TaskId = strings.Repeat("x", bytes)
			return e
		}
		stream.events(id, big(1, 20<<20))
		require.Equal(b, "1", b.read(s), "a single large one fits")
		stream.events(id, big(2, 5<<20), big(3, 5<<20))
		synctest.Wait()
		require.Equal(b, "resync", b.read(s))
	})
}

func TestTerminalEventIsNotLostInAnOverflow(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		s, stream, id := b.live(0)
		for v := int64(1); v <= 9; v++ {
			stream.events(id, working(v))
		}
		stream.events(id, update(10, a2apb.TaskState_TASK_STATE_FAILED))
		require.Equal(b, "resync end", b.read(s))
	})
}

func TestBrokenStreamIsMadeAnewWhereItWas(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		s, stream, id := b.live(1)
		stream.events(id, working(2))
		synctest.Wait()
		stream.cut()
		pass(time.Second)
		stream = b.notifier.current()
		request := stream.sent()[0]
		require.EqualValues(b, 2, request.GetWatch().GetAfter())
		late := b.start(-1)
		require.Empty(b, late, "who subscribes meanwhile waits for the new stream")
		stream.watching(request.GetWatchId(), 2)
		stream.events(request.GetWatchId(), working(3))
		require.Equal(b, "2 3", b.read(s))
		require.EqualValues(b, 2, b.take(late).Position())
	})
}

func TestResyncWhenTheNewStreamStartsLater(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		s, stream, _ := b.live(1)
		stream.cut()
		pass(time.Second)
		stream = b.notifier.current()
		id := stream.sent()[0].GetWatchId()
		stream.watching(id, 5)
		require.Equal(b, "resync", b.read(s))
		stream.events(id, working(6))
		require.Equal(b, "6", b.read(s))
	})
}

func TestEventOutOfOrderLeadsToAResync(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		s, stream, id := b.live(1)
		stream.events(id, working(3), working(2))
		require.Equal(b, "resync", b.read(s))
		stream.events(id, working(4))
		require.Equal(b, "4", b.read(s))
	})
}

func TestSubscribersReadTheStoreWhileTheNotifierIsOutOfReach(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		s, stream, _ := b.live(1)
		b.notifier.setDown(true)
		stream.cut()
		synctest.Wait()
		require.Error(b, b.watcher.Ready())
		pass(time.Second)
		require.Empty(b, b.read(s))
		pass(10 * time.Second)
		require.Equal(b, "resync", b.read(s))
		pass(10 * time.Second)
		require.Equal(b, "resync", b.read(s))

		b.notifier.setDown(false)
		pass(10 * time.Second)
		require.NoError(b, b.watcher.Ready())
		require.Less(b, b.notifier.dials, 40, "attempts are spaced out")
	})
}

func TestWatchFailsWhenTheNotifierCantBeReachedInTime(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		b.notifier.setDown(true)
		b.notifier.current().cut()
		got := <-b.start(-1)
		require.ErrorIs(b, got.err, watch.ErrUnavailable)
		require.ErrorIs(b, got.err, context.DeadlineExceeded)
	})
}

func TestStopEndsSubscriptions(t *testing.T) {
	t.Parallel()
	play(t, func(b *bundle) {
		s, _, _ := b.live(1)
		waiting := b.start(9)
		require.NoError(b, b.watcher.Stop(context.Background()))
		require.Equal(b, watch.ErrUnavailable.Error(), b.read(s))
		b.take(waiting)
		require.ErrorIs(b, (<-b.start(-1)).err, watch.ErrUnavailable)
	})
}
