package reaper

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/lifecycle/lifecycletest"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
)

func TestReaperKeepsTheServiceContract(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	lifecycletest.Stress(t, func(*testing.T) lifecycle.Service { return c.newReaper("reaper-1", c.Agents) })
}

func TestATaskWhoseLeaseLapsedIsQueuedAgainUntilItsAttemptsAreUsedUp(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	id := c.accept(1)[0]
	for attempt := range maxAttempts {
		require.NotNil(t, c.claim(id).GetClaim())
		c.do(c.expireLeases)
		require.Equal(t, engine.PhaseLeased, c.task(id).Phase, "the lease has not lapsed yet")
		c.clock.advance(lease + time.Second)
		c.do(c.expireLeases)
		if attempt < maxAttempts-1 {
			require.Equal(t, engine.PhaseQueued, c.task(id).Phase)
			c.requireMessages(attempt + 2)
		}
	}
	require.Equal(t, task.Failed, c.task(id).State)
	require.Equal(t, []string{id + " max_attempts after 2"}, c.deadLetters())
}

// The clocks of two processes may let both hold the role for a moment.
func TestTwoReapersCountALostAttemptOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	ids := c.accept(40)
	for _, id := range ids {
		require.NotNil(t, c.claim(id).GetClaim())
	}
	c.clock.advance(lease + time.Second)
	var reapers sync.WaitGroup
	for _, r := range []*Reaper{c.Reaper, c.newReaper("reaper-2", c.Agents)} {
		reapers.Go(func() { _, _ = r.expireLeases(t.Context()) })
	}
	reapers.Wait()
	c.do(c.expireLeases)
	require.Equal(t, map[int64]int{2: 40}, c.enqueueCounts(ids))
}

func TestADelayedTaskIsEnqueuedWhenItIsDue(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	id := c.accept(1)[0]
	claim := c.claim(id).GetClaim()
	_, err := c.store.ReleaseTasks(t.Context(), &taskstorev1.ReleaseTasksRequest{Holder: holder, Releases: []*taskstorev1.Release{{
		Lease: &taskstorev1.LeaseRef{TaskId: id, LeaseEpoch: claim.GetLeaseEpoch()}, Failed: true, Delay: durationpb.New(time.Minute),
	}}})
	require.NoError(t, err)
	c.do(c.enqueueDue)
	require.Equal(t, 1, c.messages())
	c.clock.advance(time.Minute + time.Second)
	c.do(c.enqueueDue)
	c.requireMessages(2)
	require.NotNil(t, c.claim(id).GetClaim())
}

func TestATaskThatWaitedTooLongForItsSenderIsGivenUp(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	id := c.accept(1)[0]
	claim := c.claim(id).GetClaim()
	answer, err := c.store.WriteEvents(t.Context(), &taskstorev1.WriteEventsRequest{Holder: holder, Writes: []*taskstorev1.TaskWrite{{
		Lease:          &taskstorev1.LeaseRef{TaskId: id, LeaseEpoch: claim.GetLeaseEpoch()},
		HandledVersion: 1,
		Events: []*taskstorev1.TaskEvent{{Kind: &taskstorev1.TaskEvent_StatusUpdate{StatusUpdate: &a2apb.TaskStatusUpdateEvent{
			Status: &a2apb.TaskStatus{State: task.InputRequired},
		}}}},
	}}})
	require.NoError(t, err)
	require.Zero(t, answer.GetResults()[0].GetRefusal())
	c.clock.advance(23 * time.Hour)
	c.do(c.expireParked)
	require.Equal(t, task.InputRequired, c.task(id).State)
	c.clock.advance(2 * time.Hour)
	c.do(c.expireParked)
	require.Equal(t, task.Failed, c.task(id).State)
	require.Equal(t, []string{id + " input_timeout after 0"}, c.deadLetters())
}

func TestATurnThatIsNotEndedByItsExecutorIsGivenUp(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	id := c.accept(1)[0]
	require.NotNil(t, c.claim(id).GetClaim())
	c.clock.advance(time.Hour + time.Second)
	c.do(c.expireTurns)
	require.Equal(t, task.Working, c.task(id).State, "its executor may still do so")
	c.clock.advance(turnMargin)
	c.do(c.expireTurns)
	require.Equal(t, task.Failed, c.task(id).State)
	require.Equal(t, []string{id + " max_runtime after 1"}, c.deadLetters())
}

func TestWhatIsOlderThanItsRetentionIsForgotten(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	id := c.accept(1)[0]
	key := engine.DedupeKey{Tenant: tenant, Subject: "alice", Agent: agent}
	canceled := c.store.CancelTasks(t.Context(), []*taskstorev1.CancelTaskRequest{{
		Scope: &taskstorev1.Scope{Tenant: tenant, Agent: agent, Subject: "alice"}, TaskId: id,
	}})[0]
	require.NoError(t, canceled.Err)
	found, err := c.engine.ReadTasks(t.Context(), engine.Scope{Tenant: tenant}, []string{id}, engine.Detail{History: -1})
	require.NoError(t, err)
	m := &a2apb.Message{}
	require.NoError(t, proto.Unmarshal(found[0].History[0].Data, m))
	key.MessageID = m.GetMessageId()
	purge := func() {
		for _, duty := range []func(context.Context) (bool, error){c.purgeDedupe, c.purgeDirects, c.purgeContexts, c.purgeEvents} {
			c.do(duty)
		}
	}
	purge()
	_, err = c.engine.ReadDedupe(t.Context(), key)
	require.NoError(t, err)
	c.clock.advance(40 * time.Hour)
	require.Eventually(t, func() bool { // until the publisher's mark is recorded
		purge()
		events, _, err := c.engine.ReadEvents(t.Context(), engine.Scope{Tenant: tenant}, id, 0, 10)
		require.NoError(t, err)
		return len(events) == 0
	}, patience, 100*time.Millisecond)
	_, err = c.engine.ReadDedupe(t.Context(), key)
	require.ErrorIs(t, err, engine.ErrNotFound)
	require.Equal(t, task.Canceled, c.task(id).State, "the task stays")
}

func TestARunningReaperDoesAllOfIt(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	ids := c.accept(2)
	require.NotNil(t, c.claim(ids[0]).GetClaim())
	c.requireMessages(len(ids))
	require.NoError(t, c.stream.Purge(t.Context()))
	c.clock.advance(lease + time.Second)
	for _, r := range []*Reaper{c.Reaper, c.newReaper("reaper-2", c.Agents)} {
		require.NoError(t, r.Start(t.Context()))
		t.Cleanup(func() { require.NoError(t, r.Stop(context.Background())) })
	}
	c.requireMessages(2)
	require.Equal(t, map[int64]int{2: 2}, c.enqueueCounts(ids), "the lapsed one and the lost one, each once")
}
