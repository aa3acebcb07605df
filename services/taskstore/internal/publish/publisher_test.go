package publish

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/errandhq/errand/pkg/events"
	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/lifecycle/lifecycletest"
	"github.com/errandhq/errand/pkg/natsconn"
	"github.com/errandhq/errand/pkg/queue"
	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	executorv1 "github.com/errandhq/errand/proto/gen/errand/executor/v1"
	"github.com/errandhq/errand/services/taskstore/internal/store"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
)

func TestPublisherKeepsTheServiceContract(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	lifecycletest.Stress(t, func(*testing.T) lifecycle.Service { return c.newPublisher("store-1") })
}

func TestCommittedEventsArePublishedInOrderAndOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.start(c.newPublisher("store-1"))
	require.Zero(t, c.recorded("store-1"), "registered before anything is committed")
	tasks := []*task{newTask(), newTask(), newTask(), newTask()}
	live := c.read(tasks...)
	var writers sync.WaitGroup
	for _, task := range tasks {
		writers.Go(func() {
			for range 30 {
				c.commit(p, task, 3)
			}
		})
	}
	writers.Wait()
	c.requireStored(tasks...)
	for _, task := range tasks {
		require.IsIncreasing(t, live.of(task))
	}
	c.requireRecorded("store-1", 360)
	c.stop(p)
	require.Equal(t, int64(-1), c.recorded("store-1"), "nothing is left to anybody")
}

func TestAnAbortedTransactionDoesNotHoldUpTheMark(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.start(c.newPublisher("store-1"))
	task := newTask()
	aborted := p.Reserve(5)
	c.commit(p, task, 1)
	c.requireStored(task)
	require.Zero(t, c.recorded("store-1"), "the first transaction may still commit")
	aborted.Abort()
	c.requireRecorded("store-1", 6)
}

func TestACommitInDoubtIsPublishedOnceItIsFound(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.start(c.newPublisher("store-1"))
	doubtful, sure := newTask(), newTask()
	r := p.Reserve(2)
	c.insert(r, doubtful.next(), doubtful.next())
	r.Doubt()
	c.commit(p, sure, 1)
	c.requireStored(doubtful, sure)
	c.requireRecorded("store-1", 3)
}

func TestATransactionInDoubtThatNeverComesUpIsTakenForAborted(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.newPublisher("store-1")
	p.doubtTime = 0
	c.start(p)
	p.Reserve(2).Doubt()
	task := newTask()
	c.commit(p, task, 1)
	c.requireStored(task)
	c.requireRecorded("store-1", 3)
}

// A database that stood still while it committed does so when it goes on, however
// long that was.
func TestTheTimeOfADoubtBeginsWhenTheDatabaseAnswers(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.newPublisher("store-1")
	p.doubtTime = 0
	r := p.Reserve(1)
	r.Doubt()
	away, cancel := context.WithCancel(t.Context())
	cancel()
	p.resolveDoubts(away)
	p.resolveDoubts(t.Context())
	late := newTask()
	c.insert(r, late.next())
	p.resolveDoubts(t.Context())
	c.requireStored(late)
	require.Empty(t, p.doubts)
}

// An outage neither blocks those who commit nor fills the memory.
func TestWithoutNATSEventsWaitInTheOutbox(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.start(c.newPublisher("store-1"))
	tasks := []*task{newTask(), newTask()}
	c.commit(p, tasks[0], 1)
	c.requireStored(tasks[0])
	c.disconnect()

	running := p.Reserve(1)
	for range 400 {
		c.commit(p, tasks[0], 1)
		c.commit(p, tasks[1], 2)
	}
	require.Eventually(t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.behind != nil && p.pending == nil && p.ledger.open.Len() == 1
	}, patience, soon, "nothing is kept")
	require.NoError(t, p.Ready())

	late := newTask()
	event := late.next()
	c.insert(running, event)
	running.Commit(t.Context(), []store.Notice{{Events: []*eventv1.Event{event}}})
	c.reconnect()
	c.requireStored(append(tasks, late)...)
	c.requireRecorded("store-1", 1202)

	c.commit(p, tasks[0], 1)
	c.requireStored(append(tasks, late)...)
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Nil(t, p.behind, "it has caught up")
}

func TestWhatFindsNoRoomInMemoryIsDrainedFromTheOutbox(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.newPublisher("store-1")
	p.roomBytes = 200
	tasks := []*task{newTask(), newTask()}
	for range 20 {
		c.commit(p, tasks[0], 1)
		c.commit(p, tasks[1], 1)
	}
	require.NotNil(t, p.behind)
	c.start(p)
	c.requireStored(tasks...)
	c.requireRecorded("store-1", 40)
}

func TestADrainStopsBelowATransactionThatStillRuns(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.newPublisher("store-1")
	p.roomBytes = 0
	first, running, last := newTask(), newTask(), newTask()
	c.commit(p, first, 1)
	r := p.Reserve(1)
	c.commit(p, last, 1)
	c.start(p)
	c.requireStored(first)
	c.requireRecorded("store-1", 1)

	event := running.next()
	c.insert(r, event)
	r.Commit(t.Context(), []store.Notice{{Events: []*eventv1.Event{event}}})
	c.requireStored(first, running, last)
	c.requireRecorded("store-1", 3)
}

func TestHintsAreSentInTheTraceOfTheirRequest(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.start(c.newPublisher("store-1"))
	controls := make(chan trace.TraceID, 1)
	sub, err := events.SubscribeControl(c.nc, "executor-1", func(ctx context.Context, _ *executorv1.Control) {
		controls <- trace.SpanContextFromContext(ctx).TraceID()
	})
	require.NoError(t, err)
	t.Cleanup(sub.Close)
	require.NoError(t, c.nc.Flush())
	span := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled,
	})
	work := &executorv1.WorkItem{Tenant: tenant, Agent: agent, TaskId: "t", Version: 1, EnqueueCount: 1}
	p.Reserve(0).Commit(t.Context(), []store.Notice{{
		Trace:    span,
		Work:     []*executorv1.WorkItem{work},
		Controls: []store.Control{{Holder: "executor-1", Message: &executorv1.Control{TaskId: "t"}}},
	}})
	require.Equal(t, span.TraceID(), <-controls)
	require.Eventually(t, func() bool {
		head, err := queue.Head(t.Context(), c.nc, agent, tenant)
		return err == nil && head.GetTaskId() == "t"
	}, patience, soon)
}

func TestHintsThatCannotBeSentAreDropped(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.disconnect()
	p := c.newPublisher("store-1")
	for range maxPendingHints + 10 {
		p.Reserve(0).Commit(t.Context(), []store.Notice{{Work: []*executorv1.WorkItem{{Tenant: tenant, Agent: agent}}}})
	}
	require.Len(t, p.hints, maxPendingHints)
	c.start(p)
	require.Eventually(t, p.idle, patience, soon)
}

func TestAStopWithoutNATSLeavesTheEventsToARelay(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.newPublisher("store-1")
	require.NoError(t, p.Start(t.Context()))
	c.disconnect()
	require.ErrorIs(t, natsconn.Ready(c.nc), natsconn.ErrDisconnected)
	c.commit(p, newTask(), 1)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, p.Stop(ctx), context.DeadlineExceeded)
	require.Zero(t, c.recorded("store-1"))
}

// Nothing is gained by using up the time that a process has to stop.
func TestAStopDoesNotWaitLongForNATS(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.newPublisher("store-1")
	require.NoError(t, p.Start(t.Context()))
	c.disconnect()
	c.commit(p, newTask(), 1)
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
	defer cancel()
	require.NoError(t, p.Stop(ctx))
	require.InDelta(t, stuckAfter.Seconds(), time.Since(began).Seconds(), 1.5)
	require.Zero(t, c.recorded("store-1"), "a relay finds what is left")
}

func TestAStopPublishesWhatItCan(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.newPublisher("store-1")
	p.roomBytes = 0 // everything is drained from the outbox
	tasks := []*task{newTask(), newTask()}
	for range 400 {
		c.commit(p, tasks[0], 1)
		c.commit(p, tasks[1], 1)
	}
	require.NoError(t, p.Start(t.Context()))
	c.stop(p)
	c.requireStored(tasks...)
	require.Equal(t, int64(-1), c.recorded("store-1"))
}
