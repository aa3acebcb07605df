package storetest

import (
	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/stretchr/testify/require"
)

// parkForAuth brings a new task into AUTH_REQUIRED with a grant.
func (f *fixture) parkForAuth(grant string) *taskstorev1.Claim {
	f.Helper()
	c := f.running()
	w := taskWrite(c, status(task.AuthRequired, "please sign in"))
	w.Grant = grant
	require.Zero(f, f.write(w).GetRefusal())
	return c
}

func (f *fixture) resume(id, grant string) (int64, error) {
	result := f.store.ResumeTasks(f.Context(), []*taskstorev1.ResumeTaskRequest{
		{Tenant: f.scope.GetTenant(), Agent: f.scope.GetAgent(), TaskId: id, Grant: grant},
	})[0]
	return result.Value.GetVersion(), result.Err
}

var parkCases = map[string]func(*fixture){
	"asking gives the lease back": func(f *fixture) {
		for _, state := range []task.State{task.InputRequired, task.AuthRequired} {
			c := f.settled(state)
			require.Equal(f, taskstorev1.Refusal_REFUSAL_LEASE_LOST, f.renew(c).GetRefusal())
			require.Equal(f, taskstorev1.Refusal_REFUSAL_LEASE_LOST, f.release(c, false, 0))
			require.Equal(f, taskstorev1.Refusal_REFUSAL_LEASE_LOST, f.write(taskWrite(c, status(task.Working, ""))).GetRefusal())
		}
	},
	"a grant resumes its task once": func(f *fixture) {
		c := f.parkForAuth("s3cret")
		id := c.GetTask().GetId()
		f.sent.take()
		version, err := f.resume(id, "s3cret")
		require.NoError(f, err)
		require.Equal(f, c.GetVersion()+2, version)
		notices := f.sent.take()
		require.Equal(f, task.Working, notices[0].Events[0].GetStatusUpdate().GetStatus().GetState())
		require.Equal(f, version, notices[0].Work[0].GetVersion())
		_, err = f.resume(id, "s3cret")
		f.refused(err, a2aerr.ReasonUnsupportedOperation)
		again := f.claim(id)
		require.Equal(f, []string{"go", "please sign in"}, history(again.GetTask()))
		require.EqualValues(f, 1, again.GetHandledVersion())
		f.emit(again, status(task.AuthRequired, "and again"))
		_, err = f.resume(id, "s3cret")
		f.refused(err, a2aerr.ReasonUnauthorized)
	},
	"only the task's own grant resumes it": func(f *fixture) {
		id := f.parkForAuth("s3cret").GetTask().GetId()
		other := f.parkForAuth("other").GetTask().GetId()
		_, version := f.get(id)
		for _, grant := range []string{"", "other", "s3cret "} {
			_, err := f.resume(id, grant)
			f.refused(err, a2aerr.ReasonUnauthorized)
		}
		_, err := f.resume(other, "s3cret")
		f.refused(err, a2aerr.ReasonUnauthorized)
		_, now := f.get(id)
		require.Equal(f, version, now)
	},
	"a task that asked without a grant is resumed by a message alone": func(f *fixture) {
		id := f.settled(task.AuthRequired).GetTask().GetId()
		_, err := f.resume(id, "")
		f.refused(err, a2aerr.ReasonUnauthorized)
		f.accept(f.followUp(id, "done"))
		f.claim(id)
	},
	"a message uses the grant up": func(f *fixture) {
		id := f.parkForAuth("s3cret").GetTask().GetId()
		f.accept(f.followUp(id, "signed in"))
		_, err := f.resume(id, "s3cret")
		f.refused(err, a2aerr.ReasonUnsupportedOperation)
	},
	"only AUTH_REQUIRED is resumed": func(f *fixture) {
		for _, state := range []task.State{task.Working, task.InputRequired, task.Completed} {
			_, err := f.resume(f.settled(state).GetTask().GetId(), "x")
			f.refused(err, a2aerr.ReasonUnsupportedOperation)
		}
		_, err := f.resume(task.NewID(), "x")
		f.refused(err, a2aerr.ReasonTaskNotFound)
	},
	"a grant comes with AUTH_REQUIRED alone": func(f *fixture) {
		c := f.running()
		for _, state := range []task.State{task.Working, task.InputRequired, task.Completed} {
			w := taskWrite(c, status(state, ""))
			w.Grant = "s3cret"
			require.Equal(f, taskstorev1.Refusal_REFUSAL_INVALID_EVENT, f.write(w).GetRefusal())
		}
	},
}
