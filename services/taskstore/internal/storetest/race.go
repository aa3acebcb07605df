package storetest

import (
	"fmt"
	"math/rand/v2"
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
		for range 5 {
			f.raceForOneTask()
		}
	},
}

// raceForOneTask has three stores on one database, as three processes would be,
// change one task at once: 100 appends, 20 messages, and a cancel at any time.
func (f *fixture) raceForOneTask() {
	f.Helper()
	c := f.running()
	id := c.GetTask().GetId()
	stores := []*fixture{f, f.beside(), f.beside()}
	var mu sync.Mutex
	var appended, accepted []string
	acknowledge := func(list *[]string, text string) {
		mu.Lock()
		defer mu.Unlock()
		*list = append(*list, text)
	}
	f.emit(c, chunk("a", "start", false))
	acknowledge(&appended, "start")
	acknowledge(&accepted, c.GetMessages()[0].GetMessage().GetMessageId())
	var group sync.WaitGroup
	for i := range 100 {
		group.Go(func() {
			text := fmt.Sprint(i)
			if stores[i%3].write(taskWrite(c, chunk("a", text, true))).GetRefusal() == 0 {
				acknowledge(&appended, text)
			}
		})
	}
	for i := range 20 {
		r := f.followUp(id, fmt.Sprint("message ", i))
		group.Go(func() {
			if _, err := stores[i%3].tryAccept(r); err == nil {
				acknowledge(&accepted, r.GetMessage().GetMessageId())
			}
		})
	}
	var canceledAt int64
	after := rand.N(100)
	group.Go(func() {
		require.Eventually(f, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(appended) > after
		}, waitLong, waitStep)
		canceledAt = stores[1].cancel(id).GetVersion()
	})
	group.Wait()
	f.requireOutcome(id, canceledAt, appended, accepted)
}

// beside is another store on the same database.
func (f *fixture) beside() *fixture {
	other := &fixture{T: f.T, db: f.db, clock: f.clock, sent: f.sent, scope: f.scope}
	other.store = other.newStore(f.db.Engine)
	return other
}

// requireOutcome sees that a canceled task holds all that was acknowledged, each
// once, and that nothing came after the cancel.
func (f *fixture) requireOutcome(id string, canceledAt int64, appended, accepted []string) {
	f.Helper()
	t, version := f.get(id)
	require.Equal(f, task.Canceled, t.GetStatus().GetState())
	require.Equal(f, canceledAt, version, "nothing came after the cancel")
	var parts, messages []string
	for _, p := range t.GetArtifacts()[0].GetParts() {
		parts = append(parts, p.GetText())
	}
	for _, m := range t.GetHistory() {
		messages = append(messages, m.GetMessageId())
	}
	require.ElementsMatch(f, appended, parts)
	require.ElementsMatch(f, accepted, messages)
	require.EqualValues(f, 2+len(appended)+len(accepted)-1+1, version)
	events := f.events(id)
	require.Len(f, events, int(version))
	for i, e := range events {
		require.EqualValues(f, i+1, e.GetVersion())
	}
}
