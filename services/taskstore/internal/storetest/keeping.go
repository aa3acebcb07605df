package storetest

import (
	"time"

	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// day is how long senders' messages are remembered in these cases.
const day = 24 * time.Hour

// purged runs a purge until it has nothing more to do; other cases' rows may
// be purged with this one's.
func (f *fixture) purged(purge func(limit int) (int, error)) {
	f.Helper()
	for n := 100; n == 100; {
		var err error
		n, err = purge(100)
		require.NoError(f, err)
	}
}

var keepingCases = map[string]func(*fixture){
	"a role has one holder until its time is over": func(f *fixture) {
		role, now := "role-"+uuid.NewString(), f.clock.Now()
		hold := func(holder string, now time.Time) bool {
			held, err := f.db.Engine.HoldRole(f.Context(), role, holder, now, now.Add(time.Minute))
			require.NoError(f, err)
			return held
		}
		require.True(f, hold("a", now))
		require.False(f, hold("b", now))
		require.True(f, hold("a", now.Add(30*time.Second)))
		require.False(f, hold("b", now.Add(89*time.Second)))
		require.True(f, hold("b", now.Add(90*time.Second)))
		require.NoError(f, f.db.Engine.DropRole(f.Context(), role, "a"), "no longer its to drop")
		require.False(f, hold("a", now.Add(91*time.Second)))
		require.NoError(f, f.db.Engine.DropRole(f.Context(), role, "b"))
		require.True(f, hold("a", now.Add(91*time.Second)))
	},
	"a role doesn't stay with its holder's clock when that is set back": func(f *fixture) {
		role, now := "role-"+uuid.NewString(), f.clock.Now()
		hold := func(holder string, now time.Time) bool {
			held, err := f.db.Engine.HoldRole(f.Context(), role, holder, now, now.Add(time.Minute))
			require.NoError(f, err)
			return held
		}
		require.True(f, hold("a", now))
		require.False(f, hold("b", now.Add(-engine.RoleClockSlack)), "clocks differ")
		require.True(f, hold("b", now.Add(-engine.RoleClockSlack-time.Millisecond)))
	},
	"a message is remembered until its task has been over for a time": func(f *fixture) {
		// Long ago, so that nobody else's rows are old enough.
		f.clock.advance(-3650 * day)
		open, closed := f.request(f.newMessage("open")), f.request(f.newMessage("closed"))
		c := f.claim(f.accept(closed).GetTask().GetId())
		f.accept(open)
		direct := f.newMessage("direct")
		f.reply(f.replyTo(direct, "hi"))
		f.clock.advance(day)
		f.emit(c, status(task.Completed, ""))
		purge := func(before time.Time) {
			f.purged(func(limit int) (int, error) { return f.db.Engine.PurgeDedupe(f.Context(), before, limit) })
		}
		purge(f.clock.Now())
		require.True(f, f.accept(closed).GetDuplicate())
		found, err := f.find(direct)
		require.NoError(f, err)
		require.Nil(f, found.GetOutcome())
		purge(f.clock.Now().Add(time.Millisecond))
		require.True(f, f.accept(open).GetDuplicate())
		closed.NewTaskId = task.NewID()
		require.False(f, f.accept(closed).GetDuplicate())
	},
	"direct exchanges and contexts go when their time is over": func(f *fixture) {
		f.clock.advance(-3650 * day)
		f.reply(f.replyTo(f.newMessage("hi"), "hello"))
		now := f.clock.Now()
		turns := func() int {
			answer, err := f.store.ListTurns(f.Context(), &taskstorev1.ListTurnsRequest{Scope: f.scope, ContextId: "c1"})
			require.NoError(f, err)
			return len(answer.GetTurns())
		}
		purge := func(before time.Time) {
			f.purged(func(limit int) (int, error) { return f.db.Engine.PurgeDirects(f.Context(), before, limit) })
			f.purged(func(limit int) (int, error) {
				return f.db.Engine.PurgeContexts(f.Context(), before.Add(time.Hour), limit)
			})
		}
		purge(now)
		require.Equal(f, 1, turns())
		_, err := f.db.Engine.ReadContext(f.Context(), f.contextKey("c1"))
		require.NoError(f, err)
		purge(now.Add(time.Millisecond))
		require.Zero(f, turns())
		_, err = f.db.Engine.ReadContext(f.Context(), f.contextKey("c1"))
		require.Error(f, err)
	},
}
