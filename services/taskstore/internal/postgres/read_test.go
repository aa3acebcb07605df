package postgres_test

import (
	"fmt"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/stretchr/testify/require"
)

func TestASnapshotHoldsTheStatusMessageTheNewestHistoryAndTheArtifacts(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	task := queuedTask(now())
	message := func(version int64, kind engine.MessageKind) engine.Message {
		return engine.Message{TaskID: task.ID, Version: version, Kind: kind, Data: fmt.Append(nil, version)}
	}
	chunk := func(artifact string, version, position int64) engine.Chunk {
		return engine.Chunk{
			ArtifactKey: engine.ArtifactKey{TaskID: task.ID, ArtifactID: artifact},
			Version:     version, Position: position, Total: version, Data: fmt.Append(nil, artifact, version),
		}
	}
	task.Version, task.StatusVersion, task.State, task.Phase = 9, 9, a2apb.TaskState_TASK_STATE_INPUT_REQUIRED, engine.PhaseIdle
	question := message(9, engine.MessageStatus)
	history := []engine.Message{message(1, engine.MessageUser), message(2, engine.MessageStatus), message(3, engine.MessageUser)}
	d.update(t, &engine.Changes{
		InsertTasks: []*engine.Task{task},
		Messages:    append(history, question),
		Chunks:      []engine.Chunk{chunk("b", 4, 4), chunk("a", 7, 5), chunk("b", 6, 4), chunk("a", 8, 5)},
	})

	for _, c := range []struct {
		detail  engine.Detail
		history []engine.Message
		chunks  []engine.Chunk
	}{
		{engine.Detail{}, nil, nil},
		{engine.Detail{History: 2}, history[1:], nil},
		{engine.Detail{History: 100}, history, nil},
		{
			engine.Detail{History: -1, Artifacts: true}, history,
			[]engine.Chunk{chunk("b", 4, 4), chunk("b", 6, 4), chunk("a", 7, 5), chunk("a", 8, 5)},
		},
	} {
		found, err := d.ReadTasks(t.Context(), engine.Scope{Tenant: tenant}, []string{task.ID}, c.detail)
		require.NoError(t, err)
		require.Equal(t, []*engine.Snapshot{{Task: task, StatusMessage: &question, History: c.history, Chunks: c.chunks}}, found)
	}
}

func TestTasksAreReadInTheOrderInWhichTheyWereAsked(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	a, b := queuedTask(now()), queuedTask(now())
	d.update(t, &engine.Changes{InsertTasks: []*engine.Task{a, b}})
	found, err := d.ReadTasks(t.Context(), engine.Scope{Tenant: tenant}, []string{b.ID, taskID(1), a.ID}, engine.Detail{})
	require.NoError(t, err)
	require.Equal(t, []*engine.Snapshot{{Task: b}, {Task: a}}, found)
}

func TestAListingPagesThroughEveryTaskOnce(t *testing.T) {
	t.Parallel()
	d, at := newDatabase(t), now()
	var tasks []*engine.Task
	for i := range 20 {
		task := queuedTask(at)
		task.ID = taskID(byte(i))
		task.StatusTime = at.Add(-time.Duration(i/3) * time.Millisecond) // several share a time
		tasks = append(tasks, task)
	}
	d.update(t, &engine.Changes{InsertTasks: tasks})

	q := engine.ListQuery{Scope: engine.Scope{Tenant: tenant, Agent: agent}, Limit: 4}
	var listed []*engine.Task
	for {
		page, err := d.ListTasks(t.Context(), q)
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		for _, s := range page {
			listed = append(listed, s.Task)
		}
		last := listed[len(listed)-1]
		q.BeforeTime, q.BeforeID = last.StatusTime, last.ID
	}
	require.Equal(t, tasks, listed)
}

func TestAListingFiltersByEverythingAtOnce(t *testing.T) {
	t.Parallel()
	d, at := newDatabase(t), now()
	match := queuedTask(at)
	others := []func(*engine.Task){
		func(t *engine.Task) { t.Tenant = "other" },
		func(t *engine.Task) { t.Agent = "other" },
		func(t *engine.Task) { t.Owner = "other" },
		func(t *engine.Task) { t.ContextID = "other" },
		claim,
		func(t *engine.Task) { t.StatusTime = at.Add(-time.Second) },
	}
	changes := &engine.Changes{InsertTasks: []*engine.Task{match}}
	for _, differ := range others {
		task := queuedTask(at)
		differ(task)
		changes.InsertTasks = append(changes.InsertTasks, task)
	}
	d.update(t, changes)

	all := engine.ListQuery{Scope: engine.Scope{Tenant: tenant}, Limit: 100}
	n, err := d.CountTasks(t.Context(), all, 100)
	require.NoError(t, err)
	require.Equal(t, len(others), n)

	q := engine.ListQuery{
		Scope: engine.Scope{Tenant: tenant, Agent: agent, Owner: owner}, ContextID: "ctx-1", State: match.State, StatusSince: at, Limit: 100,
	}
	page, err := d.ListTasks(t.Context(), q)
	require.NoError(t, err)
	require.Equal(t, []*engine.Snapshot{{Task: match}}, page)
	n, err = d.CountTasks(t.Context(), q, 100)
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

func TestACountIsExactToItsBoundAndAnEstimateAbove(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	var tasks []*engine.Task
	for range 300 {
		tasks = append(tasks, queuedTask(now()))
	}
	d.update(t, &engine.Changes{InsertTasks: tasks})
	q := engine.ListQuery{Scope: engine.Scope{Tenant: tenant, Agent: agent}, BeforeTime: now(), BeforeID: tasks[0].ID, Limit: 1}
	n, err := d.CountTasks(t.Context(), q, 300)
	require.NoError(t, err)
	require.Equal(t, 300, n, "the page's position doesn't count")

	n, err = d.CountTasks(t.Context(), q, 299)
	require.NoError(t, err)
	require.GreaterOrEqual(t, n, 300, "without statistics too")

	require.NoError(t, d.sql(t, "ANALYZE tasks"))
	n, err = d.CountTasks(t.Context(), q, 10)
	require.NoError(t, err)
	require.Equal(t, 300, n, "the planner knows")
}

func TestEventsAreReadWithTheHeadOfTheSameMoment(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	task := queuedTask(now())
	task.Version = 3
	d.update(t, &engine.Changes{
		InsertTasks: []*engine.Task{task},
		Events:      []engine.Event{event(task, 3, 3), event(task, 1, 1), event(task, 2, 2)},
	})
	events, head, err := d.ReadEvents(t.Context(), engine.Scope{Tenant: tenant}, task.ID, 1, 1)
	require.NoError(t, err)
	require.Equal(t, []engine.Event{event(task, 2, 2)}, events)
	require.Equal(t, int64(3), head.Version)

	_, _, err = d.ReadEvents(t.Context(), engine.Scope{Tenant: "other"}, task.ID, 0, 10)
	require.ErrorIs(t, err, engine.ErrNotFound)

	heads, err := d.ReadHeads(t.Context(), []engine.TaskRef{
		{Tenant: tenant, ID: task.ID}, {Tenant: "other", ID: task.ID}, {Tenant: tenant, ID: taskID(9)},
	})
	require.NoError(t, err)
	require.Equal(t, []engine.Head{head}, heads)
}

func TestUserMessagesAreReadAboveAVersion(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	task := queuedTask(now())
	task.Version, task.MessageVersion = 4, 4
	messages := []engine.Message{
		{TaskID: task.ID, Version: 1, Kind: engine.MessageUser, Data: []byte("1")},
		{TaskID: task.ID, Version: 2, Kind: engine.MessageUser, Data: []byte("2"), Request: []byte("r")},
		{TaskID: task.ID, Version: 3, Kind: engine.MessageStatus, Data: []byte("3")},
		{TaskID: task.ID, Version: 4, Kind: engine.MessageUser, Data: []byte("4")},
	}
	d.update(t, &engine.Changes{InsertTasks: []*engine.Task{task}, Messages: messages})
	found, err := d.ReadUserMessages(t.Context(), engine.TaskRef{Tenant: tenant, ID: task.ID}, 1)
	require.NoError(t, err)
	require.Equal(t, []engine.Message{messages[1], messages[3]}, found)
}

func TestTurnsAreAContextsTasksAndDirectExchangesNewestFirst(t *testing.T) {
	t.Parallel()
	d, at := newDatabase(t), now()
	key := engine.ContextKey{Tenant: tenant, Owner: owner, Agent: agent, ContextID: "ctx-1"}
	first, third, foreign := queuedTask(at), queuedTask(at.Add(2*time.Second)), queuedTask(at)
	foreign.Owner = "other"
	second := engine.Direct{ID: "d", Key: key, CreatedAt: at.Add(time.Second), Message: []byte("m"), Reply: []byte("r")}
	d.update(t, &engine.Changes{InsertTasks: []*engine.Task{first, third, foreign}, Directs: []engine.Direct{second}})

	all := []engine.Turn{
		{CreatedAt: third.CreatedAt, TaskID: third.ID},
		{CreatedAt: second.CreatedAt, Direct: &second},
		{CreatedAt: first.CreatedAt, TaskID: first.ID},
	}
	for limit := range 4 {
		turns, err := d.ReadTurns(t.Context(), key, limit)
		require.NoError(t, err)
		require.Len(t, turns, limit)
		require.Equal(t, all[:limit], append([]engine.Turn{}, turns...))
	}
	direct, err := d.ReadDirect(t.Context(), tenant, "d")
	require.NoError(t, err)
	require.Equal(t, second, direct)
}
