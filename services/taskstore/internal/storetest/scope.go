package storetest

import (
	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// foreigners are scopes that don't see what the fixture's scope made.
func (f *fixture) foreigners() map[string]*taskstorev1.Scope {
	of := func(change func(*taskstorev1.Scope)) *taskstorev1.Scope {
		s := proto.CloneOf(f.scope)
		change(s)
		return s
	}
	return map[string]*taskstorev1.Scope{
		"tenant": of(func(s *taskstorev1.Scope) { s.Tenant += "x" }),
		"agent":  of(func(s *taskstorev1.Scope) { s.Agent += "x" }),
		"owner":  of(func(s *taskstorev1.Scope) { s.Subject, s.OwnedOnly = "bob", true }),
	}
}

var scopeCases = map[string]func(*fixture){
	"what a subject may not see does not exist for it": func(f *fixture) {
		parked := f.parkForAuth("grant").GetTask()
		id := parked.GetId()
		before, version := f.get(id)
		f.sent.take()
		for name, scope := range f.foreigners() {
			own := f.scope
			f.scope = scope
			_, err := f.store.GetTask(f.Context(), &taskstorev1.GetTaskRequest{Scope: scope, TaskId: id})
			f.refused(err, a2aerr.ReasonTaskNotFound)
			_, err = f.tryCancel(id)
			f.refused(err, a2aerr.ReasonTaskNotFound)
			_, err = f.store.ListEvents(f.Context(), &taskstorev1.ListEventsRequest{Scope: scope, TaskId: id})
			f.refused(err, a2aerr.ReasonTaskNotFound)
			for _, contextID := range []string{"", parked.GetContextId(), "other"} {
				r := f.followUp(id, "mine now")
				r.Message.ContextId = contextID
				_, err = f.tryAccept(r)
				f.refused(err, a2aerr.ReasonTaskNotFound)
			}
			answer, err := f.list(func(r *taskstorev1.ListTasksRequest) { r.ContextId = parked.GetContextId() })
			require.NoError(f, err)
			require.Empty(f, answer.GetTasks(), name)
			require.Zero(f, answer.GetTotalSize())
			turns, err := f.store.ListTurns(f.Context(), &taskstorev1.ListTurnsRequest{Scope: scope, ContextId: parked.GetContextId()})
			require.NoError(f, err)
			require.Empty(f, turns.GetTurns(), name)
			f.scope = own
		}
		after, now := f.get(id)
		require.Equal(f, version, now)
		require.True(f, proto.Equal(before, after))
		require.Empty(f, f.sent.take())
	},
	"executors and notifiers are kept within their tenant and agent": func(f *fixture) {
		parked := f.parkForAuth("grant").GetTask().GetId()
		queued := f.start("go")
		for _, name := range []string{"tenant", "agent"} {
			scope := f.foreigners()[name]
			result := f.store.ResumeTasks(f.Context(), []*taskstorev1.ResumeTaskRequest{
				{Tenant: scope.GetTenant(), Agent: scope.GetAgent(), TaskId: parked, Grant: "grant"},
			})[0]
			f.refused(result.Err, a2aerr.ReasonTaskNotFound)
			answer, err := f.store.ClaimTasks(f.Context(), &taskstorev1.ClaimTasksRequest{
				Agent: scope.GetAgent(), Holder: holder, Lease: durationpb.New(lease),
				Tasks: []*taskstorev1.TaskRef{{Tenant: scope.GetTenant(), TaskId: queued}},
			})
			require.NoError(f, err)
			require.Equal(f, taskstorev1.Refusal_REFUSAL_NOT_FOUND, answer.GetResults()[0].GetRefusal())
		}
		messages, err := f.store.ListUserMessages(f.Context(), &taskstorev1.ListUserMessagesRequest{
			Tenant: f.scope.GetTenant() + "x", TaskId: queued,
		})
		require.NoError(f, err)
		require.Empty(f, messages.GetMessages())
		f.claim(queued)
	},
	"a subject that shares the agent may go on with another's task where the policy lets it": func(f *fixture) {
		id := f.settled(task.InputRequired).GetTask().GetId()
		f.scope = proto.CloneOf(f.scope)
		f.scope.Subject = "bob"
		f.accept(f.followUp(id, "yes"))
		c := f.claim(id)
		require.Equal(f, "alice", c.GetOwner())
		require.Equal(f, "bob", c.GetMessages()[1].GetRequest().GetSubject())
	},
	"a context id is each owner's own": func(f *fixture) {
		_, err := f.putContext("c1", "alice's", 0)
		require.NoError(f, err)
		for name, scope := range f.foreigners() {
			own := f.scope
			f.scope = scope
			require.Empty(f, f.context("c1").GetState(), name)
			_, err := f.putContext("c1", "mine", 0)
			require.NoError(f, err, name)
			f.scope = own
		}
		require.Equal(f, "alice's", string(f.context("c1").GetState()))
	},
	"a direct Message is found by its sender alone": func(f *fixture) {
		m := f.newMessage("hi")
		f.reply(f.replyTo(m, "hello"))
		for name, scope := range f.foreigners() {
			own := f.scope
			f.scope = scope
			found, err := f.find(m)
			require.NoError(f, err)
			require.Nil(f, found.GetOutcome(), name)
			f.scope = own
		}
	},
	"no scope is no access": func(f *fixture) {
		id := f.start("go")
		for _, scope := range []*taskstorev1.Scope{
			nil, {}, {Agent: f.scope.GetAgent(), Subject: "alice"},
			{Tenant: f.scope.GetTenant(), Agent: f.scope.GetAgent(), OwnedOnly: true},
		} {
			_, err := f.store.GetTask(f.Context(), &taskstorev1.GetTaskRequest{Scope: scope, TaskId: id})
			f.refused(err, a2aerr.ReasonInvalidParams)
			_, err = f.store.ListTasks(f.Context(), &taskstorev1.ListTasksRequest{Scope: scope, PageSize: 1})
			f.refused(err, a2aerr.ReasonInvalidParams)
			_, err = f.store.ListEvents(f.Context(), &taskstorev1.ListEventsRequest{Scope: scope, TaskId: id})
			f.refused(err, a2aerr.ReasonInvalidParams)
			f.refused(f.store.CancelTasks(f.Context(), []*taskstorev1.CancelTaskRequest{{Scope: scope, TaskId: id}})[0].Err, a2aerr.ReasonInvalidParams)
		}
		result := f.store.ResumeTasks(f.Context(), []*taskstorev1.ResumeTaskRequest{{TaskId: id}})[0]
		f.refused(result.Err, a2aerr.ReasonInvalidParams)
	},
}
