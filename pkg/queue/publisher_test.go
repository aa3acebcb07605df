package queue_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	executorv1 "github.com/errandhq/errand/proto/gen/errand/executor/v1"

	"github.com/errandhq/errand/pkg/natsconn"
	"github.com/errandhq/errand/pkg/queue"
	"github.com/errandhq/errand/pkg/testkit"
)

func TestPublishStoresEachItemAndTellsItsSequence(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	p := newPublisher(t, nc)
	results := publish(t, p, append(works("default", 600), works("other", 5)...)...)
	require.Len(t, results, 605)
	seen := map[uint64]bool{}
	for _, result := range results {
		require.False(t, result.Duplicate)
		seen[result.Sequence] = true
	}
	require.Len(t, seen, 605)
	depths, err := queue.Depths(within(t), nc, "writer")
	require.NoError(t, err)
	require.Equal(t, map[string]uint64{"default": 600, "other": 5}, depths)
	depth, err := queue.Depth(within(t), nc, "writer", "other")
	require.NoError(t, err)
	require.Equal(t, uint64(5), depth)
}

func TestPublishReportsARepeatedEnqueueingAsDuplicate(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	p := newPublisher(t, nc)
	first := publish(t, p, work("default", 1))[0]
	repeated := publish(t, p, work("default", 1))[0]
	require.True(t, repeated.Duplicate)
	require.Equal(t, first.Sequence, repeated.Sequence)

	c := newConsumer(t, nc)
	require.Equal(t, taskIDs(works("default", 2)[1:]), all(t, c, 1))
	requireEmpty(t, nc)
	require.True(t, publish(t, p, work("default", 1))[0].Duplicate, "also after the message was worked on")
	requireEmpty(t, nc)
}

func TestPublishTakesANewEnqueueingOfTheSameTaskInTheDuplicateWindow(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	p := newPublisher(t, nc)
	c := newConsumer(t, nc)
	item := work("default", 1)
	for _, turn := range []struct{ version, count int64 }{{1, 1}, {1, 2}, {5, 3}} {
		item.Work.Version, item.Work.EnqueueCount = turn.version, turn.count
		require.False(t, publish(t, p, item)[0].Duplicate)
		require.Equal(t, []string{item.Work.GetTaskId()}, all(t, c, 1))
	}
}

func TestPublishRefusesOnlyTheItemWhoseNameIsNoSubject(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	p := newPublisher(t, nc)
	for _, tenant := range []string{"", "a.b", "*", ">", "a b", "a\r\nPUB x 0", "ünï", "A", "a_b"} {
		results := p.Publish(within(t), work("good", 1), work(tenant, 1))
		require.NoError(t, results[0].Err)
		require.ErrorIs(t, results[1].Err, queue.ErrBadName, "%q", tenant)
	}
	depths, err := queue.Depths(within(t), nc, "writer")
	require.NoError(t, err)
	require.Equal(t, map[string]uint64{"good": 1}, depths)
}

func TestPublishWakesEachAgentAndTenantOnce(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	p := newPublisher(t, nc)
	wakes := make(chan string, 100)
	_, err := nc.Subscribe("errand.wake.>", func(msg *nats.Msg) { wakes <- msg.Subject })
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	publish(t, p, append(works("default", 20), works("other", 20)...)...)
	require.ElementsMatch(t, []string{"errand.wake.writer.default", "errand.wake.writer.other"}, []string{<-wakes, <-wakes})
	require.NoError(t, nc.Flush())
	require.Empty(t, wakes)
}

func TestPublishMakesAStreamThatHasGone(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	p := newPublisher(t, nc)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	require.NoError(t, js.DeleteStream(within(t), queue.Stream))
	require.False(t, publish(t, p, work("default", 1))[0].Duplicate)
}

func TestPublishFailsAtOnceWithoutAServer(t *testing.T) {
	t.Parallel()
	srv := testkit.NewNATSServer(t)
	nc := srv.Connect()
	p := newPublisher(t, nc)
	srv.Stop()
	require.Eventually(t, func() bool { return natsconn.Ready(nc) != nil }, patience, time.Millisecond)
	began := time.Now()
	results := p.Publish(within(t), works("default", 3)...)
	require.Less(t, time.Since(began), 5*time.Second)
	for _, result := range results {
		require.ErrorIs(t, result.Err, natsconn.ErrDisconnected)
	}
	_, err := queue.Depths(within(t), nc, "writer")
	require.ErrorIs(t, err, natsconn.ErrDisconnected)
}

func TestAFullQueueRefusesInsteadOfDropping(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	cfg := queue.StreamConfig{MaxBytes: 4096}
	require.NoError(t, queue.EnsureStream(within(t), nc, cfg))
	p, err := queue.NewPublisher(nc, queue.PublisherConfig{Stream: cfg})
	require.NoError(t, err)
	stored := uint64(0)
	refused := 0
	for _, result := range p.Publish(within(t), works("default", 200)...) {
		if result.Err != nil {
			refused++
			continue
		}
		stored++
	}
	require.Positive(t, refused)
	depth, err := queue.Depth(within(t), nc, "writer", "default")
	require.NoError(t, err)
	require.Equal(t, stored, depth)
}

func TestTheWorkStreamIsUpdatedOnStart(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	require.NoError(t, queue.EnsureStream(within(t), nc, queue.StreamConfig{MaxBytes: 1 << 20}))
	require.NoError(t, queue.EnsureStream(within(t), nc, queue.StreamConfig{MaxBytes: 2 << 20}))
	cfg := stream(t, nc).CachedInfo().Config
	require.Equal(t, int64(2<<20), cfg.MaxBytes)
	require.Equal(t, jetstream.WorkQueuePolicy, cfg.Retention)
	require.Equal(t, jetstream.FileStorage, cfg.Storage)
}

func TestMessageIDTellsEnqueueingsApart(t *testing.T) {
	t.Parallel()
	require.Equal(t, "t:3:2", queue.MessageID(&executorv1.WorkItem{TaskId: "t", Version: 3, EnqueueCount: 2}))
}
