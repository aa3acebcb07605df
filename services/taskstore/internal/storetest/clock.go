package storetest

import (
	"time"

	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/services/taskstore/internal/store"
	"github.com/stretchr/testify/require"
)

var clockCases = map[string]func(*fixture){
	"the database tells its time": func(f *fixture) {
		first, err := f.db.Engine.Now(f.Context())
		require.NoError(f, err)
		second, err := f.db.Engine.Now(f.Context())
		require.NoError(f, err)
		require.False(f, second.Before(first))
		require.WithinDuration(f, time.Now(), second, time.Minute, "it runs on this machine")
	},
	"a clock that is set back stops nobody who works": func(f *fixture) {
		c, canceled := f.running(), f.running()
		f.clock.advance(-10 * time.Minute)
		require.Zero(f, f.renew(c).GetRefusal())
		f.emit(c, chunk("a", "A", false), status(task.Completed, ""))
		f.cancel(canceled.GetTask().GetId())
		fresh := f.running()
		require.Zero(f, f.release(fresh, true, 0))
		f.claim(fresh.GetTask().GetId())
		for _, e := range f.events(c.GetTask().GetId()) {
			require.NotNil(f, e.GetTime())
		}
	},
	"a clock that is set back delays what is due by no more than that": func(f *fixture) {
		dead, delayed := f.running(), f.running()
		require.Zero(f, f.release(delayed, true, time.Minute))
		f.clock.advance(-10 * time.Minute)
		require.Equal(f, store.Left, f.expireLease(dead))
		now := f.clock.advance(11*time.Minute + time.Millisecond)
		require.Equal(f, store.Requeued, f.expireLease(dead))
		due, err := f.db.Engine.DueTasks(f.Context(), now, 10_000)
		require.NoError(f, err)
		require.Contains(f, due, delayed.GetTask().GetId())
	},
	"a clock that is set ahead costs a living holder nothing that a heartbeat came before": func(f *fixture) {
		c := f.running()
		f.clock.advance(10 * time.Minute)
		require.Zero(f, f.renew(c).GetRefusal())
		require.Equal(f, store.Left, f.expireLease(c))
		f.emit(c, status(task.Completed, ""))
	},
	"agents with unsettled tasks are found": func(f *fixture) {
		find := func() []string {
			agents, err := f.db.Engine.UnsettledAgents(f.Context())
			require.NoError(f, err)
			require.IsIncreasing(f, agents)
			return agents
		}
		f.settled(task.InputRequired)
		require.Contains(f, find(), f.scope.GetAgent())
		other := newFixture(f.T, f.db)
		running := other.running()
		require.Contains(f, find(), other.scope.GetAgent())
		other.emit(running, status(task.Completed, ""))
		other.start("queued")
		require.NotContains(f, find(), other.scope.GetAgent())
	},
}
