package storetest

import (
	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/errandhq/errand/services/taskstore/internal/store"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
)

var terminal = []task.State{task.Completed, task.Failed, task.Canceled, task.Rejected}

// change runs raw changes against the engine, past all rules.
func (f *fixture) change(c *engine.Changes) error {
	return f.db.Engine.Update(f.Context(), engine.Selection{}, func(*engine.Loaded) (*engine.Changes, error) { return c, nil })
}

func (f *fixture) row(id string) *engine.Task {
	f.Helper()
	found, err := f.db.Engine.ReadTasks(f.Context(), engine.Scope{Tenant: f.scope.GetTenant()}, []string{id}, engine.Detail{})
	require.NoError(f, err)
	require.Len(f, found, 1)
	return found[0].Task
}

var finalCases = map[string]func(*fixture){
	"every move that is not in the table is refused": func(f *fixture) {
		for from := task.Working; from <= task.AuthRequired; from++ {
			for to := task.State(0); to <= task.AuthRequired; to++ {
				c := f.settled(from)
				before, version := f.get(c.GetTask().GetId())
				refusal := f.write(taskWrite(c, status(to, ""))).GetRefusal()
				if from == task.Working && task.CanMove(from, to) {
					require.Zero(f, refusal, "%s to %s", from, to)
					continue
				}
				require.NotZero(f, refusal, "%s to %s", from, to)
				after, now := f.get(c.GetTask().GetId())
				require.Equal(f, version, now)
				require.True(f, proto.Equal(before, after))
			}
		}
	},
	"a terminal task accepts nothing more": func(f *fixture) {
		for _, state := range terminal {
			c := f.settled(state)
			id := c.GetTask().GetId()
			before, version := f.get(id)
			f.sent.take()
			for to := task.Submitted; to <= task.AuthRequired; to++ {
				require.NotZero(f, f.write(taskWrite(c, status(to, "late"))).GetRefusal())
			}
			require.NotZero(f, f.write(taskWrite(c, chunk("a", "late", false))).GetRefusal())
			require.NotZero(f, f.release(c, true, 0))
			require.NotZero(f, f.renew(c).GetRefusal())
			require.Equal(f, taskstorev1.Refusal_REFUSAL_TERMINAL, f.tryClaim(id).GetRefusal())
			_, err := f.tryAccept(f.followUp(id, "late"))
			f.refused(err, a2aerr.ReasonUnsupportedOperation)
			_, err = f.resume(id, "")
			f.refused(err, a2aerr.ReasonUnsupportedOperation)
			later := f.clock.Now().Add(1000 * lease)
			for _, kept := range [][]store.Result[store.Kept]{
				f.store.Enqueue(f.Context(), []string{id}),
				f.store.ExpireParked(f.Context(), []string{id}, later),
				f.store.ExpireTurns(f.Context(), []string{id}, later),
				f.store.ExpireLeases(f.Context(), []engine.LeaseRef{{TaskID: id, Epoch: c.GetLeaseEpoch()}}),
			} {
				require.Equal(f, []store.Result[store.Kept]{{Value: store.Left}}, kept)
			}
			after, now := f.get(id)
			require.Equal(f, version, now)
			require.True(f, proto.Equal(before, after))
			require.Empty(f, f.sent.take())
		}
	},
	"statements refuse to change a terminal row": func(f *fixture) {
		for _, state := range terminal {
			read := f.row(f.settled(state).GetTask().GetId())
			changed := *read
			changed.Version++
			require.ErrorIs(f, f.change(&engine.Changes{UpdateTasks: []engine.TaskUpdate{
				{ReadVersion: read.Version, ReadLeaseEpoch: read.LeaseEpoch, Task: &changed},
			}}), engine.ErrConflict)
		}
	},
	"the database refuses rows for a terminal task": func(f *fixture) {
		row := f.row(f.settled(task.Completed).GetTask().GetId())
		next := row.Version + 1
		require.Error(f, f.change(&engine.Changes{Messages: []engine.Message{
			{TaskID: row.ID, Version: next, Kind: engine.MessageUser, Data: []byte{}},
		}}))
		require.Error(f, f.change(&engine.Changes{Chunks: []engine.Chunk{
			{ArtifactKey: engine.ArtifactKey{TaskID: row.ID, ArtifactID: "a"}, Version: next, Position: next, Data: []byte{}},
		}}))
		t, _ := f.get(row.ID)
		require.Empty(f, t.GetArtifacts())
		require.Len(f, t.GetHistory(), 1)
	},
	"the database refuses plain SQL on a terminal task": func(f *fixture) {
		for _, state := range terminal {
			id := f.settled(state).GetTask().GetId()
			where := ` WHERE id = '` + id + `'`
			require.Error(f, f.db.Exec(f.Context(), `UPDATE tasks SET state = 2, terminal_at = NULL, phase = 1, queued_at = created_at`+where))
			require.Error(f, f.db.Exec(f.Context(), `UPDATE tasks SET version = version + 1`+where))
			require.Error(f, f.db.Exec(f.Context(), `UPDATE tasks SET enqueue_count = enqueue_count + 1`+where))
			require.Equal(f, state, f.row(id).State)
		}
		id := f.start("go")
		require.NoError(f, f.db.Exec(f.Context(), `UPDATE tasks SET enqueue_count = enqueue_count + 1 WHERE id = '`+id+`'`))
	},
	"an update of another version or lease epoch than was read changes nothing": func(f *fixture) {
		read := f.row(f.running().GetTask().GetId())
		changed := *read
		changed.Version++
		for _, stale := range []engine.TaskUpdate{
			{ReadVersion: read.Version - 1, ReadLeaseEpoch: read.LeaseEpoch, Task: &changed},
			{ReadVersion: read.Version, ReadLeaseEpoch: read.LeaseEpoch - 1, Task: &changed},
		} {
			require.ErrorIs(f, f.change(&engine.Changes{UpdateTasks: []engine.TaskUpdate{stale}}), engine.ErrConflict)
		}
		require.Equal(f, read, f.row(read.ID))
	},
	"a change that fails half way leaves nothing": func(f *fixture) {
		fresh := *f.row(f.start("go"))
		fresh.ID = task.NewID()
		bad := fresh
		bad.ID, bad.State = task.NewID(), 99
		require.Error(f, f.change(&engine.Changes{InsertTasks: []*engine.Task{&fresh, &bad}}))
		found, err := f.db.Engine.ReadTasks(f.Context(), engine.Scope{Tenant: f.scope.GetTenant()}, []string{fresh.ID}, engine.Detail{})
		require.NoError(f, err)
		require.Empty(f, found)
	},
}
