package storetest

import (
	"time"

	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/errandhq/errand/services/taskstore/internal/store"
	"github.com/stretchr/testify/require"
)

func (f *fixture) expireLease(c *taskstorev1.Claim) store.Kept {
	f.Helper()
	result := f.store.ExpireLeases(f.Context(), []engine.LeaseRef{{TaskID: c.GetTask().GetId(), Epoch: c.GetLeaseEpoch()}})[0]
	require.NoError(f, result.Err)
	return result.Value
}

var expireCases = map[string]func(*fixture){
	"a lapsed lease is found and its task queued again": func(f *fixture) {
		c := f.running()
		id := c.GetTask().GetId()
		require.Equal(f, store.Left, f.expireLease(c))
		now := f.clock.advance(lease + time.Millisecond)
		lapsed, err := f.db.Engine.LapsedLeases(f.Context(), now, 10_000)
		require.NoError(f, err)
		require.Contains(f, lapsed, engine.LeaseRef{TaskID: id, Epoch: c.GetLeaseEpoch()})
		f.sent.take()
		require.Equal(f, store.Requeued, f.expireLease(c))
		notices := f.sent.take()
		require.Len(f, notices[0].Work, 1)
		require.Empty(f, notices[0].Events)
		require.Empty(f, notices[0].Controls, "nobody canceled the task")
		require.Equal(f, taskstorev1.Refusal_REFUSAL_LEASE_LOST, f.write(taskWrite(c, status(task.Completed, ""))).GetRefusal())
		require.EqualValues(f, 2, f.claim(id).GetAttempt(), "a lost claim counts")
		require.Equal(f, store.Left, f.expireLease(c), "the lease of that claim is over")
	},
	"a lease that was renewed meanwhile is left": func(f *fixture) {
		c := f.running()
		f.clock.advance(lease + time.Millisecond)
		require.Zero(f, f.renew(c).GetRefusal())
		require.Equal(f, store.Left, f.expireLease(c))
		f.emit(c, status(task.Completed, ""))
	},
	"the last lost claim ends the task": func(f *fixture) {
		c := f.running()
		for range maxAttempts - 1 {
			f.clock.advance(lease + time.Millisecond)
			require.Equal(f, store.Requeued, f.expireLease(c))
			c = f.claim(c.GetTask().GetId())
		}
		f.clock.advance(lease + time.Millisecond)
		require.Equal(f, store.GivenUp, f.expireLease(c))
		t, _ := f.get(c.GetTask().GetId())
		require.Equal(f, task.Failed, t.GetStatus().GetState())
		f.gaveUp(t.GetId(), "max_attempts", maxAttempts)
	},
	"an answer makes attempts start anew": func(f *fixture) {
		c := f.running()
		require.Zero(f, f.release(c, true, 0))
		c = f.claim(c.GetTask().GetId())
		require.EqualValues(f, 2, c.GetAttempt())
		f.emit(c, status(task.InputRequired, "well?"))
		f.accept(f.followUp(c.GetTask().GetId(), "yes"))
		require.EqualValues(f, 1, f.claim(c.GetTask().GetId()).GetAttempt())
	},
	"a task that waited too long for its sender fails": func(f *fixture) {
		c := f.settled(task.InputRequired)
		id := c.GetTask().GetId()
		parkedAt := f.clock.Now()
		ids, err := f.db.Engine.ParkedTasks(f.Context(), f.scope.GetAgent(), parkedAt, 10)
		require.NoError(f, err)
		require.Empty(f, ids)
		before := parkedAt.Add(time.Millisecond)
		ids, err = f.db.Engine.ParkedTasks(f.Context(), f.scope.GetAgent(), before, 10)
		require.NoError(f, err)
		require.Equal(f, []string{id}, ids)
		require.Equal(f, store.Left, f.store.ExpireParked(f.Context(), ids, parkedAt)[0].Value)
		require.Equal(f, store.GivenUp, f.store.ExpireParked(f.Context(), ids, before)[0].Value)
		t, _ := f.get(id)
		require.Equal(f, task.Failed, t.GetStatus().GetState())
		f.gaveUp(id, "input_timeout", 0)
	},
	"a turn that takes too long fails and its holder is told": func(f *fixture) {
		c := f.running()
		id := c.GetTask().GetId()
		before := f.clock.Now().Add(time.Millisecond)
		ids, err := f.db.Engine.OverrunTasks(f.Context(), f.scope.GetAgent(), before, 10)
		require.NoError(f, err)
		require.Equal(f, []string{id}, ids)
		require.Equal(f, store.Left, f.store.ExpireTurns(f.Context(), ids, f.clock.Now())[0].Value)
		f.sent.take()
		require.Equal(f, store.GivenUp, f.store.ExpireTurns(f.Context(), ids, before)[0].Value)
		require.NotNil(f, f.sent.take()[0].Controls[0].Message.GetOverrun())
		f.gaveUp(id, "max_runtime", 1)
		ids, err = f.db.Engine.OverrunTasks(f.Context(), f.scope.GetAgent(), before, 10)
		require.NoError(f, err)
		require.Empty(f, ids)
	},
	"a delayed task is queued when it is due": func(f *fixture) {
		c := f.running()
		id := c.GetTask().GetId()
		require.Zero(f, f.release(c, true, time.Minute))
		require.Equal(f, store.Left, f.store.Enqueue(f.Context(), []string{id})[0].Value)
		now := f.clock.advance(time.Minute)
		due, err := f.db.Engine.DueTasks(f.Context(), now, 10_000)
		require.NoError(f, err)
		require.Contains(f, due, id)
		f.sent.take()
		require.Equal(f, store.Requeued, f.store.Enqueue(f.Context(), []string{id})[0].Value)
		require.Len(f, f.sent.take()[0].Work, 1)
		due, err = f.db.Engine.DueTasks(f.Context(), now, 10_000)
		require.NoError(f, err)
		require.NotContains(f, due, id)
		f.claim(id)
	},
	"a lost work message is sent again under a new count": func(f *fixture) {
		id := f.start("go")
		queue := engine.Queue{Agent: f.scope.GetAgent(), Tenant: f.scope.GetTenant()}
		before := f.clock.Now().Add(time.Millisecond)
		queued, err := f.db.Engine.OldestQueued(f.Context(), queue, before, 10)
		require.NoError(f, err)
		require.Equal(f, []string{id}, queued)
		f.sent.take()
		require.Equal(f, store.Requeued, f.store.Enqueue(f.Context(), []string{id})[0].Value)
		require.EqualValues(f, 2, f.sent.take()[0].Work[0].GetEnqueueCount())
		f.claim(id)
		require.Equal(f, store.Left, f.store.Enqueue(f.Context(), []string{id})[0].Value)
		queued, err = f.db.Engine.OldestQueued(f.Context(), queue, before, 10)
		require.NoError(f, err)
		require.Empty(f, queued)
	},
	"queues are found with their oldest tasks first": func(f *fixture) {
		queue := engine.Queue{Agent: f.scope.GetAgent(), Tenant: f.scope.GetTenant()}
		var ids []string
		for range 5 {
			ids = append(ids, f.start("go"))
			f.clock.advance(time.Second)
		}
		queues, err := f.db.Engine.Queues(f.Context())
		require.NoError(f, err)
		require.Contains(f, queues, queue)
		oldest, err := f.db.Engine.OldestQueued(f.Context(), queue, f.clock.Now(), 3)
		require.NoError(f, err)
		require.Equal(f, ids[:3], oldest)
		oldest, err = f.db.Engine.OldestQueued(f.Context(), queue, f.clock.Now().Add(-4*time.Second), 10)
		require.NoError(f, err)
		require.Equal(f, ids[:1], oldest, "older than the time")
	},
}
