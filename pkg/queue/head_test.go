package queue_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/queue"
	"github.com/errandhq/errand/pkg/testkit"
)

func TestTheHeadIsTheOldestMessageThatIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	_, err := queue.Head(within(t), nc, "writer", "default")
	require.ErrorIs(t, err, queue.ErrEmpty, "there is no stream yet")

	p := newPublisher(t, nc)
	items := works("default", 3)
	publish(t, p, append(works("other", 2), items...)...)
	c := newConsumer(t, nc)
	requireHead := func(want string) {
		t.Helper()
		head, err := queue.Head(within(t), nc, "writer", "default")
		require.NoError(t, err)
		require.Equal(t, want, head.GetTaskId())
	}
	requireHead(items[0].Work.GetTaskId())
	head, err := queue.Head(within(t), nc, "writer", "default")
	require.NoError(t, err)
	require.Equal(t, uint64(3), head.Sequence)
	require.WithinDuration(t, time.Now(), head.Time, patience)
	all(t, c, 5)
	require.Eventually(t, func() bool { // acknowledgements are not answered
		_, err = queue.Head(within(t), nc, "writer", "default")
		return errors.Is(err, queue.ErrEmpty)
	}, patience, time.Millisecond)
}

func TestAnUnreadableHeadIsToldAndCanBeRemoved(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	require.NoError(t, queue.Remove(within(t), nc, 1), "there is no stream yet")
	p := newPublisher(t, nc)
	_, err := nc.Request("errand.work.writer.default", []byte("not a work item"), patience)
	require.NoError(t, err)
	publish(t, p, work("default", 1))
	head, err := queue.Head(within(t), nc, "writer", "default")
	require.NoError(t, err)
	require.Nil(t, head.WorkItem)
	require.NoError(t, queue.Remove(within(t), nc, head.Sequence))
	require.NoError(t, queue.Remove(within(t), nc, head.Sequence), "again")
	head, err = queue.Head(within(t), nc, "writer", "default")
	require.NoError(t, err)
	require.Equal(t, "default-task-1", head.GetTaskId())
}
