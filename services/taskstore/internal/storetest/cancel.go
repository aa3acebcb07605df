package storetest

import (
	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
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
