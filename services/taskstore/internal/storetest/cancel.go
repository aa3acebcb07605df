package storetest

import (
	"time"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/store"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

var cancelCases = map[string]func(*fixture){
	"a running task is canceled at once and its holder is told why": func(f *fixture) {
		c := f.running()
		f.sent.take()
		metadata, err := structpb.NewStruct(map[string]any{"reason": "too slow"})
		require.NoError(f, err)
		result := f.store.CancelTasks(f.Context(), []*taskstorev1.CancelTaskRequest{
			{Scope: f.scope, TaskId: c.GetTask().GetId(), Metadata: metadata},
		})[0]
		require.NoError(f, result.Err)
		require.Equal(f, task.Canceled, result.Value.GetTask().GetStatus().GetState())
		require.Equal(f, c.GetVersion()+1, result.Value.GetVersion())
		notices := f.sent.take()
		require.Len(f, notices, 1)
		require.Len(f, notices[0].Events, 1)
		require.Empty(f, notices[0].Work)
		require.Equal(f, holder, notices[0].Controls[0].Holder)
		require.True(f, proto.Equal(metadata, notices[0].Controls[0].Message.GetCanceled().GetMetadata()))
		require.Equal(f, taskstorev1.Refusal_REFUSAL_CANCELED, f.renew(c).GetRefusal())
	},
	"a queued and a parked task are canceled without a word to executors": func(f *fixture) {
		queued, parked := f.start("go"), f.settled(task.InputRequired).GetTask().GetId()
		f.sent.take()
		for _, id := range []string{queued, parked} {
			require.Equal(f, task.Canceled, f.cancel(id).GetTask().GetStatus().GetState())
		}
		for _, n := range f.sent.take() {
			require.Empty(f, n.Controls)
		}
		require.Equal(f, taskstorev1.Refusal_REFUSAL_TERMINAL, f.tryClaim(queued).GetRefusal())
	},
	"a cancel commits at once wherever the task stands": func(f *fixture) {
		delayed := f.running()
		require.Zero(f, f.release(delayed, true, time.Hour))
		lapsed := f.running()
		taken := f.running()
		f.clock.advance(lease + time.Millisecond) // nobody has seen that one lease lapsed
		require.Equal(f, store.Requeued, f.expireLease(taken))
		for name, c := range map[string]struct {
			id   string
			told bool
		}{
			"queued":               {f.start("go"), false},
			"delayed":              {delayed.GetTask().GetId(), false},
			"running":              {f.running().GetTask().GetId(), true},
			"asks for input":       {f.settled(task.InputRequired).GetTask().GetId(), false},
			"asks for credentials": {f.settled(task.AuthRequired).GetTask().GetId(), false},
			"lease lapsed":         {lapsed.GetTask().GetId(), true},
			"lease taken away":     {taken.GetTask().GetId(), false},
		} {
			f.sent.take()
			_, before := f.get(c.id)
			answer := f.cancel(c.id)
			require.Equal(f, task.Canceled, answer.GetTask().GetStatus().GetState(), name)
			require.Equal(f, before+1, answer.GetVersion(), name)
			require.Equal(f, c.told, len(f.sent.take()[0].Controls) == 1, name)
			require.Equal(f, taskstorev1.Refusal_REFUSAL_TERMINAL, f.tryClaim(c.id).GetRefusal(), name)
		}
		require.Equal(f, store.Left, f.expireLease(lapsed), "the reaper comes too late")
		require.Equal(f, store.Left, f.store.Enqueue(f.Context(), []string{delayed.GetTask().GetId()})[0].Value)
	},
	"canceled again returns the task": func(f *fixture) {
		id := f.start("go")
		first := f.cancel(id)
		f.sent.take()
		require.True(f, proto.Equal(first, f.cancel(id)))
		require.Empty(f, f.sent.take())
	},
	"a task that ended otherwise can't be canceled": func(f *fixture) {
		for _, state := range []task.State{task.Completed, task.Failed, task.Rejected} {
			_, err := f.tryCancel(f.settled(state).GetTask().GetId())
			f.refused(err, a2aerr.ReasonTaskNotCancelable)
		}
	},
	"an unknown task is not found": func(f *fixture) {
		for _, id := range []string{task.NewID(), "nope", ""} {
			_, err := f.tryCancel(id)
			f.refused(err, a2aerr.ReasonTaskNotFound)
		}
	},
}
