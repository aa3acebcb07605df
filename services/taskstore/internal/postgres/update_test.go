package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/stretchr/testify/require"
)

func TestAnUpdateCommitsEverythingItWasGiven(t *testing.T) {
	t.Parallel()
	d, at := newDatabase(t), now()
	task := queuedTask(at)
	task.Metadata, task.Traceparent = []byte{1, 2}, "00-aa"
	key := engine.DedupeKey{Tenant: tenant, Subject: owner, Agent: agent, MessageID: "m-1"}
	record := engine.Dedupe{DedupeKey: key, Fingerprint: make([]byte, 32), CreatedAt: at}
	contextKey := engine.ContextKey{Tenant: tenant, Owner: owner, Agent: agent, ContextID: "ctx-1"}
	message := engine.Message{TaskID: task.ID, Version: 1, Kind: engine.MessageUser, Data: []byte("question"), Request: []byte("r")}

	require.NoError(t, d.Update(t.Context(), engine.Selection{Reserve: []engine.Dedupe{record}},
		func(l *engine.Loaded) (*engine.Changes, error) {
			require.True(t, l.Reserved[key])
			record.TaskID, record.AcceptedVersion = task.ID, 1
			return &engine.Changes{
				InsertTasks:   []*engine.Task{task},
				Messages:      []engine.Message{message},
				Events:        []engine.Event{event(task, 1, 1)},
				UpdateDedupe:  []engine.Dedupe{record},
				TouchContexts: []engine.Context{{ContextKey: contextKey, CreatedAt: at, UpdatedAt: at, ExpiresAt: at.Add(time.Hour)}},
			}, nil
		}))

	found, err := d.ReadTasks(t.Context(), engine.Scope{Tenant: tenant}, []string{task.ID}, engine.Detail{History: -1})
	require.NoError(t, err)
	require.Equal(t, []*engine.Snapshot{{Task: task, History: []engine.Message{message}}}, found)
	events, head, err := d.ReadEvents(t.Context(), engine.Scope{Tenant: tenant}, task.ID, 0, 10)
	require.NoError(t, err)
	require.Equal(t, []engine.Event{event(task, 1, 1)}, events)
	require.Equal(t, engine.Head{ID: task.ID, Version: 1, State: task.State}, head)
	known, err := d.ReadDedupe(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, record, known)
	c, err := d.ReadContext(t.Context(), contextKey)
	require.NoError(t, err)
	require.Equal(t, at.Add(time.Hour), c.ExpiresAt)
}

func event(task *engine.Task, version, seq int64) engine.Event {
	return engine.Event{
		Tenant: task.Tenant, TaskID: task.ID, Version: version, CreatedAt: task.CreatedAt,
		Publisher: "store-1", Seq: seq, Data: []byte("event"),
	}
}

func TestAKnownKeyIsFoundAndNotReserved(t *testing.T) {
	t.Parallel()
	d, at := newDatabase(t), now()
	key := engine.DedupeKey{Tenant: tenant, Subject: owner, Agent: agent, MessageID: "m-1"}
	first := engine.Dedupe{DedupeKey: key, Fingerprint: []byte("first"), DirectID: "d-1", CreatedAt: at}
	sel := engine.Selection{Reserve: []engine.Dedupe{first}}
	require.NoError(t, d.Update(t.Context(), sel, decideOn(nil)))

	sel.Reserve[0].Fingerprint = []byte("second")
	require.NoError(t, d.Update(t.Context(), sel, func(l *engine.Loaded) (*engine.Changes, error) {
		require.Empty(t, l.Reserved)
		require.Equal(t, []byte("first"), l.Known[key].Fingerprint)
		return nil, nil
	}))
}

func TestAKeyIsForgottenWithItsRefusedMessage(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	key := engine.DedupeKey{Tenant: tenant, Subject: owner, Agent: agent, MessageID: "m-1"}
	sel := engine.Selection{Reserve: []engine.Dedupe{{DedupeKey: key, CreatedAt: now()}}}
	require.NoError(t, d.Update(t.Context(), sel, decideOn(&engine.Changes{DropDedupe: []engine.DedupeKey{key}})))
	_, err := d.ReadDedupe(t.Context(), key)
	require.ErrorIs(t, err, engine.ErrNotFound)
}

func TestARefusedUpdateChangesNothing(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	refusal := errors.New("refused")
	key := engine.DedupeKey{Tenant: tenant, Subject: owner, Agent: agent, MessageID: "m-1"}
	sel := engine.Selection{Reserve: []engine.Dedupe{{DedupeKey: key, CreatedAt: now()}}}
	err := d.Update(t.Context(), sel, func(*engine.Loaded) (*engine.Changes, error) { return nil, refusal })
	require.Equal(t, refusal, err, "the error comes back as it is")
	_, err = d.ReadDedupe(t.Context(), key)
	require.ErrorIs(t, err, engine.ErrNotFound)
}

func TestOneBadRowSpoilsTheWholeUpdate(t *testing.T) {
	t.Parallel()
	d, at := newDatabase(t), now()
	good, bad := queuedTask(at), queuedTask(at)
	bad.Version = 0
	err := d.Update(t.Context(), engine.Selection{}, decideOn(&engine.Changes{InsertTasks: []*engine.Task{good, bad}}))
	require.Error(t, err)
	require.NotErrorIs(t, err, engine.ErrUnavailable)
	require.Zero(t, one[int](t, d, "SELECT count(*) FROM tasks"))
}

func TestATaskThatChangedSinceItWasReadIsNotOverwritten(t *testing.T) {
	t.Parallel()
	stale := map[string]func(*engine.TaskUpdate){
		"version":     func(u *engine.TaskUpdate) { u.ReadVersion-- },
		"lease epoch": func(u *engine.TaskUpdate) { u.ReadLeaseEpoch-- },
	}
	for name, age := range stale {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			task, other := queuedTask(now()), queuedTask(now())
			d.update(t, &engine.Changes{InsertTasks: []*engine.Task{task, other}})
			err := d.Update(t.Context(), selectTasks(task.ID, other.ID), func(l *engine.Loaded) (*engine.Changes, error) {
				u := edited(l.Tasks[task.ID], claim)
				age(&u)
				return &engine.Changes{UpdateTasks: []engine.TaskUpdate{edited(l.Tasks[other.ID], claim), u}}, nil
			})
			require.ErrorIs(t, err, engine.ErrConflict)
			require.Equal(t, task, d.task(t, task.ID))
			require.Equal(t, other, d.task(t, other.ID), "no other row of the batch is changed either")
		})
	}
}

func TestTerminalIsFinal(t *testing.T) {
	t.Parallel()
	d, at := newDatabase(t), now()
	task := queuedTask(at)
	d.update(t, &engine.Changes{InsertTasks: []*engine.Task{task}})
	d.change(t, task.ID, settle(a2apb.TaskState_TASK_STATE_CANCELED))
	canceled := d.task(t, task.ID)

	additions := map[string]*engine.Changes{
		"state":   {UpdateTasks: []engine.TaskUpdate{edited(new(*canceled), settle(a2apb.TaskState_TASK_STATE_COMPLETED))}},
		"message": {Messages: []engine.Message{{TaskID: task.ID, Version: 3, Kind: engine.MessageUser}}},
		"chunk": {Chunks: []engine.Chunk{{
			ArtifactKey: engine.ArtifactKey{TaskID: task.ID, ArtifactID: "a"}, Version: 3, Position: 3,
		}}},
	}
	for name, changes := range additions {
		err := d.Update(t.Context(), engine.Selection{}, decideOn(changes))
		require.ErrorIs(t, err, engine.ErrConflict, name)
	}
	require.Equal(t, canceled, d.task(t, task.ID))
}

// The database refuses on its own what the statements refuse by predicate.
func TestTheSchemaRefusesIllegalRows(t *testing.T) {
	t.Parallel()
	d, at := newDatabase(t), now()
	open, done := queuedTask(at), queuedTask(at)
	d.update(t, &engine.Changes{InsertTasks: []*engine.Task{open, done}})
	d.change(t, done.ID, settle(a2apb.TaskState_TASK_STATE_COMPLETED))
	for _, c := range []struct{ rule, statement, id string }{
		{"a terminal state stays", "UPDATE tasks SET state = 2, phase = 1, terminal_at = NULL, queued_at = now() WHERE id = $1", done.ID},
		{"a terminal version stays", "UPDATE tasks SET version = version + 1 WHERE id = $1", done.ID},
		{"versions don't fall", "UPDATE tasks SET version = version - 1 WHERE id = $1", open.ID},
		{"lease epochs don't fall", "UPDATE tasks SET lease_epoch = lease_epoch - 1 WHERE id = $1", open.ID},
		{"states are known", "UPDATE tasks SET state = 9 WHERE id = $1", open.ID},
		{"an unsettled task has work", "UPDATE tasks SET phase = 0 WHERE id = $1", open.ID},
		{"a settled task has none", "UPDATE tasks SET state = 6 WHERE id = $1", open.ID},
		{"a terminal task has a time", "UPDATE tasks SET state = 3, phase = 0 WHERE id = $1", open.ID},
		{"a lease has a holder", "UPDATE tasks SET phase = 2 WHERE id = $1", open.ID},
		{"a grant awaits authorization", "UPDATE tasks SET grant_hash = sha256('x') WHERE id = $1", open.ID},
	} {
		require.Error(t, d.sql(t, c.statement, c.id), c.rule)
	}
	require.NoError(t, d.sql(t, "DELETE FROM tasks WHERE id = $1", done.ID), "retention may delete")
}

func TestWhatIsOutsideTheScopeDoesNotExist(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	task := queuedTask(now())
	d.update(t, &engine.Changes{InsertTasks: []*engine.Task{task}})
	visible := []engine.Scope{{}, {Tenant: tenant}, {Tenant: tenant, Agent: agent}, {Tenant: tenant, Agent: agent, Owner: owner}}
	invisible := []engine.Scope{
		{Tenant: "other"}, {Tenant: tenant, Agent: "other"}, {Tenant: tenant, Agent: agent, Owner: "other"},
	}
	for i, scope := range append(visible, invisible...) {
		sel := engine.Selection{Tasks: []engine.TaskKey{{Scope: scope, ID: task.ID}}}
		require.NoError(t, d.Update(t.Context(), sel, func(l *engine.Loaded) (*engine.Changes, error) {
			require.Equal(t, i < len(visible), l.Tasks[task.ID] != nil, scope)
			return nil, nil
		}))
	}
}

func TestAnIdThatIsNoCanonicalUUIDMatchesNothing(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	task := queuedTask(now())
	task.ID = "0192ab00-0000-7000-8000-00000000abcd"
	d.update(t, &engine.Changes{InsertTasks: []*engine.Task{task}})
	for _, id := range []string{"", "x", "0192AB00-0000-7000-8000-00000000ABCD", "0192ab000000700080000000000000abcd", "a\x00b"} {
		found, err := d.ReadTasks(t.Context(), engine.Scope{Tenant: tenant}, []string{id}, engine.Detail{})
		require.NoError(t, err)
		require.Empty(t, found)
		require.NoError(t, d.Update(t.Context(), selectTasks(id), func(l *engine.Loaded) (*engine.Changes, error) {
			require.Empty(t, l.Tasks)
			return nil, nil
		}))
	}
}

func TestTextThatPostgresCannotHoldMatchesNothing(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	for _, text := range []string{"a\x00b", "a\xff"} {
		contextKey := engine.ContextKey{Tenant: tenant, Owner: owner, Agent: agent, ContextID: text}
		sel := engine.Selection{
			Tasks:     []engine.TaskKey{{Scope: engine.Scope{Tenant: text}, ID: taskID(1)}},
			Artifacts: []engine.ArtifactKey{{TaskID: taskID(1), ArtifactID: text}},
			Contexts:  []engine.ContextKey{contextKey},
		}
		require.NoError(t, d.Update(t.Context(), sel, func(l *engine.Loaded) (*engine.Changes, error) {
			require.Empty(t, l.Artifacts)
			return nil, nil
		}))
		_, err := d.ReadDedupe(t.Context(), engine.DedupeKey{Tenant: tenant, Subject: owner, Agent: agent, MessageID: text})
		require.ErrorIs(t, err, engine.ErrNotFound)
		_, err = d.ReadDirect(t.Context(), tenant, text)
		require.ErrorIs(t, err, engine.ErrNotFound)
		_, err = d.ReadContext(t.Context(), contextKey)
		require.ErrorIs(t, err, engine.ErrNotFound)
		page, err := d.ListTasks(t.Context(), engine.ListQuery{
			Scope: engine.Scope{Tenant: tenant, Agent: text, Owner: text}, ContextID: text, Limit: 1,
		})
		require.NoError(t, err)
		require.Empty(t, page)
	}
}

func TestACanceledCallerStopsAnUpdateBeforeItsCommitOnly(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	ctx, cancel := context.WithCancel(t.Context())
	task := queuedTask(now())
	err := d.Update(ctx, engine.Selection{}, func(*engine.Loaded) (*engine.Changes, error) {
		cancel()
		return &engine.Changes{InsertTasks: []*engine.Task{task}}, nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, one[int](t, d, "SELECT count(*) FROM tasks"))
	require.NoError(t, d.Ping(t.Context()), "the connection is fit for others")
}

func TestAContextIsTouchedOnceForManyMessages(t *testing.T) {
	t.Parallel()
	d, at := newDatabase(t), now()
	key := engine.ContextKey{Tenant: tenant, Owner: owner, Agent: agent, ContextID: "c"}
	touched := func(expires time.Time) engine.Context {
		return engine.Context{ContextKey: key, CreatedAt: at, UpdatedAt: at, ExpiresAt: expires}
	}
	d.update(t, &engine.Changes{PutContexts: []engine.Context{{
		ContextKey: key, State: []byte("state"), Revision: 4, CreatedAt: at, UpdatedAt: at, ExpiresAt: at,
	}}})
	d.update(t, &engine.Changes{TouchContexts: []engine.Context{touched(at.Add(time.Hour)), touched(at.Add(2 * time.Hour))}})
	c, err := d.ReadContext(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, []byte("state"), c.State)
	require.Equal(t, int64(4), c.Revision)
	require.Equal(t, at.Add(2*time.Hour), c.ExpiresAt)
}
