package storetest

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"
)

var claimCases = map[string]func(*fixture){
	"the first claim makes the task WORKING": func(f *fixture) {
		id := f.start("go")
		f.sent.take()
		c := f.claim(id)
		require.Equal(f, task.Working, c.GetTask().GetStatus().GetState())
		require.EqualValues(f, 2, c.GetVersion())
		require.EqualValues(f, 1, c.GetLeaseEpoch())
		require.EqualValues(f, 1, c.GetAttempt())
		require.Equal(f, f.scope.GetTenant(), c.GetTenant())
		require.Equal(f, f.scope.GetSubject(), c.GetOwner())
		require.Zero(f, c.GetHandledVersion())
		require.Equal(f, f.clock.Now(), c.GetTurnStarted().AsTime())
		notices := f.sent.take()
		require.Len(f, notices, 1)
		require.Equal(f, task.Working, notices[0].Events[0].GetStatusUpdate().GetStatus().GetState())
	},
	"a claim comes with all messages and what came with them": func(f *fixture) {
		id := f.start("go")
		f.accept(f.followUp(id, "more"))
		c := f.claim(id)
		require.Equal(f, []string{"go", "more"}, history(c.GetTask()))
		require.Len(f, c.GetMessages(), 2)
		require.EqualValues(f, 1, c.GetMessages()[0].GetVersion())
		require.Equal(f, "alice", c.GetMessages()[1].GetRequest().GetSubject())
	},
	"a claim of a task that works already makes no version": func(f *fixture) {
		c := f.running()
		require.Zero(f, f.release(c, true, 0))
		require.Zero(f, c.GetTurnAge().AsDuration())
		f.clock.advance(time.Second)
		f.sent.take()
		again := f.claim(c.GetTask().GetId())
		require.Equal(f, time.Second, again.GetTurnAge().AsDuration())
		require.Equal(f, c.GetVersion(), again.GetVersion())
		require.EqualValues(f, 2, again.GetLeaseEpoch())
		require.EqualValues(f, 2, again.GetAttempt())
		require.Equal(f, c.GetTurnStarted().AsTime(), again.GetTurnStarted().AsTime(), "it is the same turn")
		require.Empty(f, f.sent.take())
	},
	"only what is queued is claimed": func(f *fixture) {
		require.Equal(f, taskstorev1.Refusal_REFUSAL_NOT_FOUND, f.tryClaim(task.NewID()).GetRefusal())
		require.Equal(f, taskstorev1.Refusal_REFUSAL_NOT_FOUND, f.tryClaim("nope").GetRefusal())
		for state, refusal := range map[task.State]taskstorev1.Refusal{
			task.Working:       taskstorev1.Refusal_REFUSAL_NOT_QUEUED,
			task.InputRequired: taskstorev1.Refusal_REFUSAL_NOT_QUEUED,
			task.AuthRequired:  taskstorev1.Refusal_REFUSAL_NOT_QUEUED,
			task.Completed:     taskstorev1.Refusal_REFUSAL_TERMINAL,
			task.Canceled:      taskstorev1.Refusal_REFUSAL_TERMINAL,
		} {
			require.Equal(f, refusal, f.tryClaim(f.settled(state).GetTask().GetId()).GetRefusal())
		}
	},
	"a holder is told what it holds, and can give it back without using an attempt up": func(f *fixture) {
		c := f.running() // an executor that didn't get the answer
		id := c.GetTask().GetId()
		again := f.tryClaim(id)
		require.Equal(f, taskstorev1.Refusal_REFUSAL_NOT_QUEUED, again.GetRefusal())
		require.Equal(f, c.GetLeaseEpoch(), again.GetHeldEpoch())
		require.Zero(f, f.claimAs("executor-2", id).GetHeldEpoch())
		require.Zero(f, f.release(c, false, 0))
		require.Zero(f, f.release(f.claim(id), true, 0), "failed")
		require.EqualValues(f, 2, f.claim(id).GetAttempt(), "of three claims one counts")
		f.cancel(id)
		require.Zero(f, f.tryClaim(id).GetHeldEpoch())
	},
	"a delayed task is not claimed before its time": func(f *fixture) {
		c := f.running()
		require.Zero(f, f.release(c, true, time.Minute))
		require.Equal(f, taskstorev1.Refusal_REFUSAL_NOT_QUEUED, f.tryClaim(c.GetTask().GetId()).GetRefusal())
		f.clock.advance(time.Minute)
		f.claim(c.GetTask().GetId())
	},
	"of claims at the same time one wins": func(f *fixture) {
		for range 5 {
			id := f.start("go")
			var won atomic.Int32
			var group sync.WaitGroup
			for range 8 {
				group.Go(func() {
					answer, err := f.store.ClaimTasks(f.Context(), &taskstorev1.ClaimTasksRequest{
						Agent: f.scope.GetAgent(), Holder: holder, Lease: durationpb.New(lease),
						Tasks: []*taskstorev1.TaskRef{{Tenant: f.scope.GetTenant(), TaskId: id}},
					})
					if err == nil && answer.GetResults()[0].GetClaim() != nil {
						won.Add(1)
					}
				})
			}
			group.Wait()
			require.EqualValues(f, 1, won.Load())
		}
	},
	"many tasks are claimed in one call, in its order": func(f *fixture) {
		r := &taskstorev1.ClaimTasksRequest{Agent: f.scope.GetAgent(), Holder: holder, Lease: durationpb.New(lease)}
		for range 20 {
			r.Tasks = append(r.Tasks, &taskstorev1.TaskRef{Tenant: f.scope.GetTenant(), TaskId: f.start("go")})
		}
		r.Tasks = append(r.Tasks, r.GetTasks()[0])
		answer, err := f.store.ClaimTasks(f.Context(), r)
		require.NoError(f, err)
		require.Len(f, answer.GetResults(), 21)
		for i, result := range answer.GetResults()[:20] {
			require.Equal(f, r.GetTasks()[i].GetTaskId(), result.GetClaim().GetTask().GetId())
		}
		require.Nil(f, answer.GetResults()[20].GetClaim(), "the same task a second time")
	},
	"what is too much for one answer stays queued": func(f *fixture) {
		r := &taskstorev1.ClaimTasksRequest{Agent: f.scope.GetAgent(), Holder: holder, Lease: durationpb.New(lease)}
		for range 3 {
			c := f.running()
			f.emit(c, chunk("a", strings.Repeat("x", eventLimit-200), false), chunk("b", strings.Repeat("x", eventLimit-200), false))
			require.Zero(f, f.release(c, true, 0))
			r.Tasks = append(r.Tasks, &taskstorev1.TaskRef{Tenant: f.scope.GetTenant(), TaskId: c.GetTask().GetId()})
		}
		answer, err := f.store.ClaimTasks(f.Context(), r)
		require.NoError(f, err)
		require.NotNil(f, answer.GetResults()[0].GetClaim())
		require.NotNil(f, answer.GetResults()[1].GetClaim())
		require.Equal(f, taskstorev1.Refusal_REFUSAL_UNAVAILABLE, answer.GetResults()[2].GetRefusal())
		require.EqualValues(f, 2, f.claim(r.GetTasks()[2].GetTaskId()).GetAttempt(), "no attempt was used up")
	},
	"a claim names its executor and a lease within bounds": func(f *fixture) {
		refs := []*taskstorev1.TaskRef{{Tenant: f.scope.GetTenant(), TaskId: f.start("go")}}
		for _, r := range []*taskstorev1.ClaimTasksRequest{
			{Agent: f.scope.GetAgent(), Tasks: refs},
			{Holder: holder, Tasks: refs},
			{Agent: f.scope.GetAgent(), Holder: holder, Tasks: refs, Lease: durationpb.New(-1)},
			{Agent: f.scope.GetAgent(), Holder: holder, Tasks: refs, Lease: durationpb.New(time.Hour)},
			{Agent: f.scope.GetAgent(), Holder: holder, Tasks: []*taskstorev1.TaskRef{{TaskId: refs[0].GetTaskId()}}},
		} {
			_, err := f.store.ClaimTasks(f.Context(), r)
			f.refused(err, a2aerr.ReasonInvalidParams)
		}
		f.claim(refs[0].GetTaskId())
	},
}
