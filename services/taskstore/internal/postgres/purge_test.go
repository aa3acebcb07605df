package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/stretchr/testify/require"
)

// The oldest row of each kind is in use by somebody.
func TestPurgesPassOverLockedRows(t *testing.T) {
	t.Parallel()
	d, at := newDatabase(t), now()
	var sel engine.Selection
	old := &engine.Changes{}
	for i, id := range []string{"oldest", "old"} {
		then := at.Add(time.Duration(i-2) * time.Hour)
		dedupe := engine.DedupeKey{Tenant: tenant, Subject: owner, Agent: agent, MessageID: id}
		key := engine.ContextKey{Tenant: tenant, Owner: owner, Agent: agent, ContextID: id}
		sel.Reserve = append(sel.Reserve, engine.Dedupe{DedupeKey: dedupe, DirectID: id, CreatedAt: then})
		old.Directs = append(old.Directs, engine.Direct{ID: id, Key: key, CreatedAt: then})
		old.PutContexts = append(old.PutContexts, engine.Context{ContextKey: key, CreatedAt: then, UpdatedAt: then, ExpiresAt: then})
		old.DeadLetters = append(old.DeadLetters, engine.DeadLetter{TaskID: taskID(byte(i)), Tenant: tenant, Agent: agent, Reason: "r", At: then})
	}
	require.NoError(t, d.Update(t.Context(), sel, decideOn(old)))

	user, err := d.pool(t).Begin(t.Context())
	require.NoError(t, err)
	defer user.Rollback(context.Background())
	for _, lock := range []string{
		"SELECT FROM dedupe_keys WHERE message_id = 'oldest' FOR UPDATE",
		"SELECT FROM direct_messages WHERE id = 'oldest' FOR UPDATE",
		"SELECT FROM contexts WHERE context_id = 'oldest' FOR UPDATE",
		"SELECT FROM dead_letters ORDER BY at LIMIT 1 FOR UPDATE",
	} {
		_, err = user.Exec(t.Context(), lock)
		require.NoError(t, err)
	}
	purges := map[string]func(context.Context, time.Time, int) (int, error){
		"dedupe": d.PurgeDedupe, "directs": d.PurgeDirects, "contexts": d.PurgeContexts, "dead letters": d.PurgeDeadLetters,
	}
	for name, purge := range purges {
		n, err := purge(t.Context(), at, 1)
		require.NoError(t, err, name)
		require.Equal(t, 1, n, name)
	}
	require.NoError(t, user.Rollback(t.Context()))
	for name, purge := range purges {
		n, err := purge(t.Context(), at, 2)
		require.NoError(t, err, name)
		require.Equal(t, 1, n, "%s: the locked row was left for later", name)
	}
}

// What an operator is told was redriven has its letter.
func TestADeadLetterIsNotPurgedWhileItIsRedriven(t *testing.T) {
	t.Parallel()
	d, at := newDatabase(t), now()
	letter := engine.DeadLetter{TaskID: taskID(1), Tenant: tenant, Agent: agent, Reason: "r", At: at.Add(-time.Hour)}
	d.update(t, &engine.Changes{DeadLetters: []engine.DeadLetter{letter}})
	sel := engine.Selection{DeadLetters: []string{letter.TaskID}}
	require.NoError(t, d.Update(t.Context(), sel, func(l *engine.Loaded) (*engine.Changes, error) {
		n, err := d.PurgeDeadLetters(t.Context(), at, 10)
		require.NoError(t, err)
		require.Zero(t, n)
		redriven := l.DeadLetters[letter.TaskID]
		redriven.Redrive = engine.Redrive{TaskID: taskID(2), At: at, By: "operator"}
		return &engine.Changes{RedriveDeadLetters: []engine.DeadLetter{redriven}}, nil
	}))
	read, err := d.ReadDeadLetter(t.Context(), letter.TaskID)
	require.NoError(t, err)
	require.Equal(t, taskID(2), read.Redrive.TaskID)
}
