package storetest

import (
	"sync"
	"time"

	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/store"
	"github.com/stretchr/testify/require"
)

// A lease lapses while its holder still works. Whichever commits first holds.
var lapseCases = map[string]func(*fixture){
	"a question before the reaper parks the task, and the lapse changes nothing": func(f *fixture) {
		for _, state := range []task.State{task.InputRequired, task.AuthRequired} {
			c := f.running()
			id := c.GetTask().GetId()
			f.clock.advance(lease + time.Millisecond)
			version := f.emit(c, status(state, "well?"))
			require.Equal(f, store.Left, f.expireLease(c))
			t, now := f.get(id)
			require.Equal(f, state, t.GetStatus().GetState())
			require.Equal(f, version, now)
			f.accept(f.followUp(id, "yes"))
			require.EqualValues(f, 1, f.claim(id).GetAttempt())
		}
	},
	"a question after the reaper is refused, and the next attempt asks again": func(f *fixture) {
		for _, state := range []task.State{task.InputRequired, task.AuthRequired} {
			c := f.running()
			id := c.GetTask().GetId()
			f.clock.advance(lease + time.Millisecond)
			require.Equal(f, store.Requeued, f.expireLease(c))
			require.Equal(f, taskstorev1.Refusal_REFUSAL_LEASE_LOST, f.write(taskWrite(c, status(state, "well?"))).GetRefusal())
			t, version := f.get(id)
			require.Equal(f, task.Working, t.GetStatus().GetState())
			require.Equal(f, c.GetVersion(), version)
			again := f.claim(id)
			require.EqualValues(f, 2, again.GetAttempt())
			f.emit(again, status(state, "well?"))
			t, _ = f.get(id)
			require.Equal(f, state, t.GetStatus().GetState())
		}
	},
	"of a question and a lapse at the same time one holds": func(f *fixture) {
		for range 30 {
			c := f.running()
			f.clock.advance(lease + time.Millisecond)
			var asked taskstorev1.Refusal
			var kept store.Kept
			var group sync.WaitGroup
			group.Go(func() { asked = f.write(taskWrite(c, status(task.InputRequired, "well?"))).GetRefusal() })
			group.Go(func() { kept = f.expireLease(c) })
			group.Wait()
			t, _ := f.get(c.GetTask().GetId())
			if asked == 0 {
				require.Equal(f, store.Left, kept)
				require.Equal(f, task.InputRequired, t.GetStatus().GetState())
			} else {
				require.Equal(f, taskstorev1.Refusal_REFUSAL_LEASE_LOST, asked)
				require.Equal(f, store.Requeued, kept)
				require.Equal(f, task.Working, t.GetStatus().GetState())
			}
		}
	},
}
