package postgres_test

import (
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/stretchr/testify/require"
)

func TestHeartbeatsMoveTheLeasesThatAreStillHeld(t *testing.T) {
	t.Parallel()
	d, at := newDatabase(t), now()
	held, lost, foreign := queuedTask(at), queuedTask(at), queuedTask(at)
	held.MessageVersion = 1
	d.update(t, &engine.Changes{
		InsertTasks: []*engine.Task{held, lost, foreign},
		PutLeases: []engine.Lease{
			{LeaseRef: engine.LeaseRef{TaskID: held.ID, Epoch: 2}, Holder: "me", ExpiresAt: at},
			{LeaseRef: engine.LeaseRef{TaskID: lost.ID, Epoch: 3}, Holder: "me", ExpiresAt: at},
			{LeaseRef: engine.LeaseRef{TaskID: foreign.ID, Epoch: 1}, Holder: "other", ExpiresAt: at},
		},
	})
	renewals, err := d.RenewLeases(t.Context(), "me", []engine.LeaseRef{
		{TaskID: lost.ID, Epoch: 2}, {TaskID: held.ID, Epoch: 2}, {TaskID: foreign.ID, Epoch: 1}, {TaskID: taskID(9), Epoch: 1},
	}, at.Add(time.Minute))
	require.NoError(t, err)
	submitted := a2apb.TaskState_TASK_STATE_SUBMITTED
	require.Equal(t, []engine.Renewal{
		{Held: false, State: submitted, MessageVersion: 1},
		{Held: true, State: submitted, MessageVersion: 1},
		{Held: false, State: submitted, MessageVersion: 1},
		{},
	}, renewals)

	lapsed, err := d.LapsedLeases(t.Context(), at.Add(time.Second), 10)
	require.NoError(t, err)
	require.ElementsMatch(t, []engine.LeaseRef{{TaskID: lost.ID, Epoch: 3}, {TaskID: foreign.ID, Epoch: 1}}, lapsed)
}

func TestAQueueIsItsTasksThatAreNotDelayedInTheOrderOfQueueing(t *testing.T) {
	t.Parallel()
	d, at := newDatabase(t), now()
	var tasks []*engine.Task
	for i := range 4 {
		task := queuedTask(at)
		task.QueuedAt = at.Add(-time.Duration(i) * time.Second)
		tasks = append(tasks, task)
	}
	delayed, elsewhere := queuedTask(at), queuedTask(at)
	delayed.DueAt = at
	elsewhere.Tenant = "other"
	d.update(t, &engine.Changes{InsertTasks: append(tasks, delayed, elsewhere)})

	queues, err := d.Queues(t.Context())
	require.NoError(t, err)
	q := engine.Queue{Agent: agent, Tenant: tenant}
	require.ElementsMatch(t, []engine.Queue{q, {Agent: agent, Tenant: "other"}}, queues)
	oldest, err := d.OldestQueued(t.Context(), q, at, 2)
	require.NoError(t, err)
	require.Equal(t, []string{tasks[3].ID, tasks[2].ID}, oldest)

	due, err := d.DueTasks(t.Context(), at, 10)
	require.NoError(t, err)
	require.Equal(t, []string{delayed.ID}, due)
	due, err = d.DueTasks(t.Context(), at.Add(-time.Millisecond), 10)
	require.NoError(t, err)
	require.Empty(t, due)
}

func TestParkedAndOverrunTasksAreFoundByAge(t *testing.T) {
	t.Parallel()
	d, at := newDatabase(t), now()
	parked, running := queuedTask(at.Add(-time.Hour)), queuedTask(at.Add(-time.Hour))
	settle(a2apb.TaskState_TASK_STATE_AUTH_REQUIRED)(parked)
	claim(running)
	d.update(t, &engine.Changes{InsertTasks: []*engine.Task{parked, running}})

	for _, c := range []struct {
		find func(before time.Time) ([]string, error)
		want string
	}{
		{func(b time.Time) ([]string, error) { return d.ParkedTasks(t.Context(), agent, b, 10) }, parked.ID},
		{func(b time.Time) ([]string, error) { return d.OverrunTasks(t.Context(), agent, b, 10) }, running.ID},
	} {
		ids, err := c.find(at)
		require.NoError(t, err)
		require.Equal(t, []string{c.want}, ids)
		ids, err = c.find(at.Add(-time.Hour))
		require.NoError(t, err)
		require.Empty(t, ids)
	}
}

func TestARoleHasOneHolderUntilItExpiresOrIsGivenBack(t *testing.T) {
	t.Parallel()
	d, at := newDatabase(t), now()
	hold := func(holder string, after time.Duration) bool {
		t.Helper()
		held, err := d.HoldRole(t.Context(), "reaper", holder, at.Add(after), at.Add(after+time.Minute))
		require.NoError(t, err)
		return held
	}
	require.True(t, hold("a", 0))
	require.False(t, hold("b", time.Second))
	require.True(t, hold("a", 30*time.Second), "renewed")
	require.False(t, hold("b", time.Minute))
	require.True(t, hold("b", 90*time.Second), "expired")
	require.NoError(t, d.DropRole(t.Context(), "reaper", "a"))
	require.False(t, hold("a", 100*time.Second), "only the holder gives a role back")
	require.NoError(t, d.DropRole(t.Context(), "reaper", "b"))
	require.True(t, hold("a", 100*time.Second))
}

func TestRecordsAreKeptUntilTheirTaskHasBeenOverForLong(t *testing.T) {
	t.Parallel()
	d, at := newDatabase(t), now()
	old, open := queuedTask(at.Add(-48*time.Hour)), queuedTask(at.Add(-48*time.Hour))
	settle(a2apb.TaskState_TASK_STATE_COMPLETED)(old)
	record := func(id string, taskID, directID string, age time.Duration) engine.Dedupe {
		return engine.Dedupe{
			DedupeKey: engine.DedupeKey{Tenant: tenant, Subject: owner, Agent: agent, MessageID: id},
			TaskID:    taskID, DirectID: directID, CreatedAt: at.Add(-age),
		}
	}
	sel := engine.Selection{Reserve: []engine.Dedupe{
		record("of a task that is over", old.ID, "", 48*time.Hour),
		record("of an open task", open.ID, "", 48*time.Hour),
		record("of an old reply", "", "d-1", 25*time.Hour),
		record("of a young reply", "", "d-2", time.Hour),
	}}
	require.NoError(t, d.Update(t.Context(), sel, decideOn(&engine.Changes{InsertTasks: []*engine.Task{old, open}})))

	n, err := d.PurgeDedupe(t.Context(), at.Add(-24*time.Hour), 1)
	require.NoError(t, err)
	require.Equal(t, 1, n, "bounded")
	n, err = d.PurgeDedupe(t.Context(), at.Add(-24*time.Hour), 10)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	left := []string{"of a young reply", "of an open task"}
	require.Equal(t, left, one[[]string](t, d, "SELECT array_agg(message_id ORDER BY message_id) FROM dedupe_keys"))
}

func TestDirectExchangesAndContextsArePurgedByAge(t *testing.T) {
	t.Parallel()
	d, at := newDatabase(t), now()
	key := engine.ContextKey{Tenant: tenant, Owner: owner, Agent: agent, ContextID: "old"}
	young := key
	young.ContextID = "young"
	d.update(t, &engine.Changes{
		Directs: []engine.Direct{{ID: "old", Key: key, CreatedAt: at.Add(-time.Hour)}, {ID: "young", Key: key, CreatedAt: at}},
		PutContexts: []engine.Context{
			{ContextKey: key, CreatedAt: at, UpdatedAt: at, ExpiresAt: at.Add(-time.Hour)},
			{ContextKey: young, CreatedAt: at, UpdatedAt: at, ExpiresAt: at},
		},
	})
	n, err := d.PurgeDirects(t.Context(), at, 10)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	n, err = d.PurgeContexts(t.Context(), at, 10)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	_, err = d.ReadDirect(t.Context(), tenant, "young")
	require.NoError(t, err)
	_, err = d.ReadContext(t.Context(), young)
	require.NoError(t, err)
}
