package storetest

import (
	"fmt"
	"sync"
	"time"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/task"
	"github.com/stretchr/testify/require"
)

// Bounds for what has to be waited for.
const (
	waitLong = 10 * time.Second
	waitStep = time.Millisecond
)

var raceCases = map[string]func(*fixture){
	"of cancel and completion at the same time one wins for all": func(f *fixture) {
		for range 30 {
			c := f.running()
			id := c.GetTask().GetId()
			errs := make([]error, 2)
			var completed bool
			var group sync.WaitGroup
			for i := range errs {
				group.Go(func() { _, errs[i] = f.tryCancel(id) })
			}
			group.Go(func() { completed = f.write(taskWrite(c, status(task.Completed, ""))).GetRefusal() == 0 })
			group.Wait()
			t, version := f.get(id)
			require.EqualValues(f, 3, version, "one terminal event")
			if completed {
				require.Equal(f, task.Completed, t.GetStatus().GetState())
			} else {
				require.Equal(f, task.Canceled, t.GetStatus().GetState())
			}
			for _, err := range errs {
				if completed {
					f.refused(err, a2aerr.ReasonTaskNotCancelable)
				} else {
					require.NoError(f, err)
				}
			}
		}
	},
	"appends, messages and a cancel at the same time lose nothing": func(f *fixture) {
		c := f.running()
		id := c.GetTask().GetId()
		f.emit(c, chunk("a", "start", false))
		// Three stores on one database, as three processes would be.
		stores := []*fixture{f, {T: f.T, db: f.db, clock: f.clock, sent: f.sent, scope: f.scope}, {T: f.T, db: f.db, clock: f.clock, sent: f.sent, scope: f.scope}}
		for _, s := range stores[1:] {
			s.store = s.newStore(f.db.Engine)
		}
		var mu sync.Mutex
		appended, accepted := 1, 1
		var canceledAt int64
		var group sync.WaitGroup
		for i := range 100 {
			group.Go(func() {
				if stores[i%3].write(taskWrite(c, chunk("a", fmt.Sprint(i), true))).GetRefusal() == 0 {
					mu.Lock()
					defer mu.Unlock()
					appended++
				}
			})
		}
		for i := range 20 {
			r := f.followUp(id, fmt.Sprint("message ", i))
			group.Go(func() {
				if _, err := stores[i%3].tryAccept(r); err == nil {
					mu.Lock()
					defer mu.Unlock()
					accepted++
				}
			})
		}
		group.Go(func() {
			require.Eventually(f, func() bool {
				mu.Lock()
				defer mu.Unlock()
				return appended > 20
			}, waitLong, waitStep)
			canceledAt = stores[1].cancel(id).GetVersion()
		})
		group.Wait()
		t, version := f.get(id)
		require.Equal(f, task.Canceled, t.GetStatus().GetState())
		require.Equal(f, canceledAt, version, "nothing came after the cancel")
		require.Len(f, t.GetArtifacts()[0].GetParts(), appended)
		require.Len(f, t.GetHistory(), accepted)
		require.EqualValues(f, 2+appended+(accepted-1)+1, version)
		events := f.events(id)
		require.Len(f, events, int(version))
		for i, e := range events {
			require.EqualValues(f, i+1, e.GetVersion())
		}
	},
}
