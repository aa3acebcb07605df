package storetest

import (
	"bytes"
	"sync"
	"sync/atomic"
	"time"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/errandhq/errand/services/taskstore/internal/store"
	"github.com/stretchr/testify/require"
)

func (f *fixture) context(id string) *taskstorev1.GetContextResponse {
	f.Helper()
	answer, err := f.store.GetContext(f.Context(), &taskstorev1.GetContextRequest{Scope: f.scope, ContextId: id})
	require.NoError(f, err)
	return answer
}

func (f *fixture) putContext(id, state string, revision int64) (int64, error) {
	result := f.store.UpdateContexts(f.Context(), []*taskstorev1.UpdateContextRequest{
		{Scope: f.scope, ContextId: id, State: []byte(state), Revision: revision},
	})[0]
	return result.Value.GetRevision(), result.Err
}

func (f *fixture) contextKey(id string) engine.ContextKey {
	return engine.ContextKey{Tenant: f.scope.GetTenant(), Owner: f.scope.GetSubject(), Agent: f.scope.GetAgent(), ContextID: id}
}

var contextCases = map[string]func(*fixture){
	"a new context has no state": func(f *fixture) {
		require.Empty(f, f.context("c1").GetState())
		require.Zero(f, f.context("c1").GetRevision())
	},
	"state is replaced by who has read it": func(f *fixture) {
		revision, err := f.putContext("c1", "one", 0)
		require.NoError(f, err)
		require.EqualValues(f, 1, revision)
		for _, stale := range []int64{0, 2, -1} {
			_, err = f.putContext("c1", "lost", stale)
			require.ErrorIs(f, err, store.ErrConflict)
		}
		revision, err = f.putContext("c1", "two\x00", 1)
		require.NoError(f, err)
		require.EqualValues(f, 2, revision)
		require.Equal(f, "two\x00", string(f.context("c1").GetState()))
		require.EqualValues(f, 2, f.context("c1").GetRevision())
	},
	"of updates at the same time one wins each round": func(f *fixture) {
		for round := range int64(5) {
			var won atomic.Int32
			var group sync.WaitGroup
			for range 8 {
				group.Go(func() {
					if _, err := f.putContext("c1", "x", round); err == nil {
						won.Add(1)
					}
				})
			}
			group.Wait()
			require.EqualValues(f, 1, won.Load())
		}
	},
	"a message makes its context and keeps it alive": func(f *fixture) {
		m := f.newMessage("hi")
		m.ContextId = "c1"
		f.accept(f.request(m))
		_, err := f.putContext("c1", "kept", 0)
		require.NoError(f, err)
		created := f.clock.Now()
		now := f.clock.advance(30 * time.Minute)
		m = f.newMessage("again")
		m.ContextId = "c1"
		f.accept(f.request(m))
		c, err := f.db.Engine.ReadContext(f.Context(), f.contextKey("c1"))
		require.NoError(f, err)
		require.Equal(f, "kept", string(c.State))
		require.Equal(f, []time.Time{created, now, now.Add(time.Hour)}, []time.Time{c.CreatedAt, c.UpdatedAt, c.ExpiresAt})
	},
	"state has a limit": func(f *fixture) {
		_, err := f.putContext("c1", string(bytes.Repeat([]byte("x"), 64<<10+1)), 0)
		f.refused(err, a2aerr.ReasonTooLarge)
		_, err = f.putContext("c1", string(bytes.Repeat([]byte("x"), 64<<10)), 0)
		require.NoError(f, err)
	},
	"turns are tasks and direct Messages, newest first": func(f *fixture) {
		m := f.newMessage("one")
		m.ContextId = "c1"
		first := f.accept(f.request(m)).GetTask().GetId()
		f.clock.advance(time.Second)
		f.reply(f.replyTo(f.newMessage("two"), "two!"))
		f.clock.advance(time.Second)
		m = f.newMessage("three")
		m.ContextId = "c1"
		third := f.claim(f.accept(f.request(m)).GetTask().GetId())
		f.emit(third, chunk("a", "x", false), status(task.Completed, "three!"))
		f.start("elsewhere")
		turns := func(limit int32) []*taskstorev1.Turn {
			answer, err := f.store.ListTurns(f.Context(), &taskstorev1.ListTurnsRequest{Scope: f.scope, ContextId: "c1", Limit: limit})
			require.NoError(f, err)
			return answer.GetTurns()
		}
		all := turns(0)
		require.Len(f, all, 3)
		require.Equal(f, third.GetTask().GetId(), all[0].GetTask().GetId())
		require.Len(f, all[0].GetTask().GetArtifacts(), 1)
		require.Equal(f, "two", texts(all[1].GetDirect().GetMessage().GetParts()))
		require.Equal(f, "two!", texts(all[1].GetDirect().GetReply().GetParts()))
		require.Equal(f, first, all[2].GetTask().GetId())
		require.Len(f, turns(2), 2)
	},
}
