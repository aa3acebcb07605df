package events_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"

	"github.com/errandhq/errand/pkg/events"
	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/lifecycle/lifecycletest"
	"github.com/errandhq/errand/pkg/natsconn"
	"github.com/errandhq/errand/pkg/testkit"
)

func TestFeedKeepsTheServiceContract(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	lifecycletest.Stress(t, func(*testing.T) lifecycle.Service {
		return events.NewFeed(nc, func(*eventv1.Event) {})
	})
}

func startFeed(t *testing.T, server *testkit.NATSServer) (*events.Feed, <-chan *eventv1.Event) {
	t.Helper()
	received := make(chan *eventv1.Event, 1000)
	feed := events.NewFeed(server.Connect(), func(e *eventv1.Event) { received <- e })
	require.NoError(t, feed.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, feed.Stop(context.Background())) })
	return feed, received
}

func TestFeedReceivesTheEventsOfItsTasks(t *testing.T) {
	t.Parallel()
	server := testkit.NewNATSServer(t)
	feed, received := startFeed(t, server)
	subs := map[string]*events.Subscription{}
	for i := range 100 {
		id := fmt.Sprintf("task-%d", i)
		sub, err := feed.Subscribe("default", id)
		require.NoError(t, err)
		subs[id] = sub
	}
	require.NoError(t, feed.Flush(within(t)))

	publisher := newPublisher(t, server.Connect(), nil)
	require.NoError(t, publisher.Publish(within(t), []*eventv1.Event{
		working("task-7", 1), working("task-100", 1), working("task-7", 2), working("task-99", 1),
	}))
	got := map[string]int64{}
	for range 3 {
		e := <-received
		got[e.GetTaskId()] = e.GetVersion()
	}
	require.Equal(t, map[string]int64{"task-7": 2, "task-99": 1}, got)

	subs["task-7"].Close()
	require.NoError(t, publisher.Publish(within(t), []*eventv1.Event{working("task-7", 3), working("task-8", 1)}))
	require.Equal(t, "task-8", (<-received).GetTaskId())
}

func TestFeedRefusesNamesThatReachOtherSubjects(t *testing.T) {
	t.Parallel()
	feed, _ := startFeed(t, testkit.NewNATSServer(t))
	for _, id := range []string{"*", ">", "a.b", ""} {
		_, err := feed.Subscribe("default", id)
		require.ErrorIs(t, err, natsconn.ErrBadToken, id)
	}
}

func TestFeedTellsOfAnInterruptionAndGoesOn(t *testing.T) {
	t.Parallel()
	server := testkit.NewNATSServer(t)
	feed, received := startFeed(t, server)
	_, err := feed.Subscribe("default", "task-1")
	require.NoError(t, err)
	server.Stop()
	require.Eventually(t, func() bool { return feed.Flush(t.Context()) != nil }, patience, time.Millisecond)
	_, err = feed.Subscribe("default", "task-2")
	require.NoError(t, err, "a task can be added while NATS is down")

	server.Start()
	<-feed.Interrupted()
	require.NoError(t, feed.Flush(within(t)))
	publisher := newPublisher(t, server.Connect(), nil)
	require.NoError(t, publisher.Publish(within(t), []*eventv1.Event{working("task-1", 1), working("task-2", 1)}))
	require.NotNil(t, <-received)
	require.NotNil(t, <-received)
}
