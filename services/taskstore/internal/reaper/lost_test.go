package reaper

import (
	"context"
	"testing"
	"time"

	"github.com/errandhq/errand/pkg/queue"
	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/pkg/testkit"
	executorv1 "github.com/errandhq/errand/proto/gen/errand/executor/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
)

const old = lostGrace + time.Second

func TestAHealthyBacklogIsLeftAlone(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	ids := c.accept(50)
	for range 4 {
		c.clock.advance(old)
		c.do(c.enqueueLost)
		ids = append(ids, c.accept(5)...)
	}
	consumer, err := queue.NewConsumer(c.nc, queue.ConsumerConfig{Agent: agent, Logger: testkit.Logger(t)})
	require.NoError(t, err)
	require.NoError(t, consumer.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, consumer.Stop(context.Background())) })
	for claimed := 0; claimed < 30; {
		deliveries, err := consumer.Next(t.Context(), 3)
		require.NoError(t, err)
		for _, d := range deliveries {
			c.do(c.enqueueLost) // delivered, not yet claimed
			require.NotNil(t, c.claim(d.Item.GetTaskId()).GetClaim())
			c.do(c.enqueueLost) // claimed, not yet acknowledged
			require.NoError(t, d.Ack())
			claimed++
		}
	}
	c.do(c.enqueueLost)
	require.Equal(t, map[int64]int{1: 70}, c.enqueueCounts(ids))
}

func TestAllWorkIsSentAgainWhenTheStreamIsLost(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	ids := c.accept(taskLimit + 50)
	c.requireMessages(len(ids))
	require.NoError(t, c.stream.Purge(t.Context()))
	c.do(c.enqueueLost)
	require.Zero(t, c.messages(), "messages may still be on their way")
	c.clock.advance(old)
	c.do(c.enqueueLost)
	// Within the time in which the stream drops repeated message ids.
	c.requireMessages(len(ids))
	require.Equal(t, map[int64]int{2: len(ids)}, c.enqueueCounts(ids))

	c.do(c.enqueueLost)
	require.Equal(t, map[int64]int{2: len(ids)}, c.enqueueCounts(ids), "once is enough")
}

func TestWhatIsOlderThanTheOldestMessageIsSentAgain(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	lost := c.accept(3)
	c.clock.advance(old)
	kept := c.accept(20)
	for seq := range uint64(3) {
		require.NoError(t, c.stream.DeleteMsg(t.Context(), seq+1))
	}
	c.clock.advance(old)
	c.do(c.enqueueLost)
	c.requireMessages(23)
	require.Equal(t, map[int64]int{2: 3}, c.enqueueCounts(lost))
	require.Equal(t, map[int64]int{1: 20}, c.enqueueCounts(kept))
}

// A backlog that never ends must not hide the tasks that fell out of it.
func TestAGapInABacklogIsFoundAsTheQueueMovesOn(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	first := c.accept(1)
	c.clock.advance(old)
	lost := c.accept(1)
	require.NoError(t, c.stream.DeleteMsg(t.Context(), 2))
	c.clock.advance(old)
	c.accept(10)
	c.do(c.enqueueLost)
	require.Equal(t, map[int64]int{1: 1}, c.enqueueCounts(lost), "the oldest message is older")

	require.NotNil(t, c.claim(first[0]).GetClaim())
	require.NoError(t, c.stream.DeleteMsg(t.Context(), 1)) // acknowledged
	c.clock.advance(old)
	c.do(c.enqueueLost)
	require.Equal(t, map[int64]int{2: 1}, c.enqueueCounts(lost))
}

func TestAMessageOfACanceledTaskTellsNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	ids := c.accept(2)
	answer := c.store.CancelTasks(t.Context(), []*taskstorev1.CancelTaskRequest{{
		Scope: &taskstorev1.Scope{Tenant: tenant, Agent: agent, Subject: "alice"}, TaskId: ids[0],
	}})[0]
	require.NoError(t, answer.Err)
	c.clock.advance(old)
	c.do(c.enqueueLost)
	require.Equal(t, map[int64]int{1: 2}, c.enqueueCounts(ids))
	require.Equal(t, 2, c.messages(), "executors are about to remove it")
}

// Without an executor nobody removes what stands for no task, and what is lost
// behind it would not be found.
func TestOldMessagesThatStandForNoTaskAreRemoved(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	canceled := c.accept(1)[0]
	for _, poison := range [][]byte{[]byte("not a work item"), nil} {
		_, err := c.nc.Request("errand.work."+agent+"."+tenant, poison, patience)
		require.NoError(t, err)
	}
	unknown, err := proto.Marshal(&executorv1.WorkItem{Tenant: tenant, Agent: agent, TaskId: "nobody", Version: 1, EnqueueCount: 1})
	require.NoError(t, err)
	_, err = c.nc.Request("errand.work."+agent+"."+tenant, unknown, patience)
	require.NoError(t, err)
	c.requireMessages(4)
	lost := c.accept(1)
	require.NoError(t, c.stream.DeleteMsg(t.Context(), 5))
	c.clock.advance(old)
	waiting := c.accept(1)
	answer := c.store.CancelTasks(t.Context(), []*taskstorev1.CancelTaskRequest{{
		Scope: &taskstorev1.Scope{Tenant: tenant, Agent: agent, Subject: "alice"}, TaskId: canceled,
	}})[0]
	require.NoError(t, answer.Err)
	c.clock.advance(orphanAge)
	c.do(c.enqueueLost)
	require.Equal(t, map[int64]int{2: 1}, c.enqueueCounts(lost))
	require.Equal(t, map[int64]int{1: 1}, c.enqueueCounts(waiting))
	c.requireMessages(2)
}

func TestWithoutNATSNothingIsSentAgain(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	ids := c.accept(3)
	c.clock.advance(old)
	c.server.Stop()
	require.Eventually(t, func() bool { return !c.nc.IsConnected() }, patience, soon)
	c.do(c.enqueueLost)
	require.Equal(t, map[int64]int{1: 3}, c.enqueueCounts(ids))
	c.server.Start()
	require.Eventually(t, c.nc.IsConnected, patience, soon)
	c.do(c.enqueueLost)
	require.Equal(t, map[int64]int{1: 3}, c.enqueueCounts(ids), "the stream is still there")
}

func TestAQueueThatCannotBeReadHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	lost := c.accept(1)
	r := c.Reaper
	r.Engine = unreadable{c.engine}
	c.requireMessages(1)
	require.NoError(t, c.stream.Purge(t.Context()))
	c.clock.advance(old)
	for range 2 {
		_, err := r.enqueueLost(t.Context())
		require.ErrorContains(t, err, "tenant a_a")
	}
	require.Equal(t, map[int64]int{2: 1}, c.enqueueCounts(lost))
}

// unreadable has a queue with a name that no subject can have, before all others.
type unreadable struct{ engine.Engine }

func (u unreadable) Queues(ctx context.Context) ([]engine.Queue, error) {
	queues, err := u.Engine.Queues(ctx)
	return append(queues, engine.Queue{Agent: agent, Tenant: "a_a"}), err
}

func (u unreadable) OldestQueued(ctx context.Context, q engine.Queue, before time.Time, limit int) ([]string, error) {
	if q.Tenant == "a_a" {
		return []string{task.NewID()}, nil
	}
	return u.Engine.OldestQueued(ctx, q, before, limit)
}

// A message id may have been used in a time that the database no longer knows of,
// as after a fail-over; the stream then drops the message and says so.
func TestWhatTheStreamTookForARepeatIsSentAgain(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	ids := c.accept(1)
	require.NoError(t, c.stream.Purge(t.Context()))
	used := &executorv1.WorkItem{Tenant: tenant, Agent: agent, TaskId: ids[0], Version: 1, EnqueueCount: 2}
	work, err := queue.NewPublisher(c.nc, queue.PublisherConfig{})
	require.NoError(t, err)
	require.NoError(t, work.Publish(t.Context(), queue.Item{Work: used})[0].Err)
	require.NoError(t, c.stream.Purge(t.Context()))
	require.True(t, work.Publish(t.Context(), queue.Item{Work: used})[0].Duplicate)

	c.clock.advance(old)
	c.do(c.enqueueLost)
	require.Equal(t, map[int64]int{2: 1}, c.enqueueCounts(ids), "under the id that the stream has seen")
	c.clock.advance(old)
	c.do(c.enqueueLost)
	require.Equal(t, map[int64]int{3: 1}, c.enqueueCounts(ids))
	c.requireMessages(1)
}

func TestALookGoesOnWhereTheLastOneEnded(t *testing.T) {
	t.Parallel()
	var queues []engine.Queue
	for i := range lostQueues + 20 {
		queues = append(queues, engine.Queue{Agent: agent, Tenant: string(rune('a' + i))})
	}
	r := &Reaper{}
	first := r.nextQueues(queues)
	require.Equal(t, queues[:lostQueues], first)
	r.lastQueue = first[len(first)-1]
	require.Equal(t, append(queues[lostQueues:len(queues):len(queues)], queues[:lostQueues-20]...), r.nextQueues(queues))
	r.lastQueue = engine.Queue{Agent: "gone"}
	require.Len(t, r.nextQueues(queues), lostQueues)
	require.Empty(t, r.nextQueues(nil))
}
