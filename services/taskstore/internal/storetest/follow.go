package storetest

import (
	"fmt"
	"sync"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
)

var followCases = map[string]func(*fixture){
	"an answer resumes a parked task behind its question": func(f *fixture) {
		c := f.running()
		id := c.GetTask().GetId()
		asked := f.emit(c, status(task.InputRequired, "which colour?"))
		f.sent.take()
		answer := f.accept(f.followUp(id, "blue"))
		t := answer.GetTask()
		require.Equal(f, task.Working, t.GetStatus().GetState())
		require.Nil(f, t.GetStatus().GetMessage())
		require.Equal(f, []string{"go", "which colour?", "blue"}, history(t))
		require.Equal(f, asked+2, answer.GetVersion())
		require.Equal(f, asked+2, answer.GetAcceptedVersion())
		notices := f.sent.take()
		require.Len(f, notices, 1)
		require.Len(f, notices[0].Events, 2)
		require.Equal(f, task.Working, notices[0].Events[0].GetStatusUpdate().GetStatus().GetState())
		require.Equal(f, "blue", texts(notices[0].Events[1].GetUserMessage().GetMessage().GetParts()))
		require.Len(f, notices[0].Work, 1)
		require.Equal(f, answer.GetVersion(), notices[0].Work[0].GetVersion())
		require.EqualValues(f, 2, notices[0].Work[0].GetEnqueueCount())
		again := f.claim(id)
		require.EqualValues(f, 1, again.GetAttempt(), "attempts start anew with each accepted message")
		require.EqualValues(f, 1, again.GetHandledVersion())
		require.Len(f, again.GetMessages(), 2)
	},
	"a message for a running task is appended and its holder is told": func(f *fixture) {
		c := f.running()
		f.sent.take()
		answer := f.accept(f.followUp(c.GetTask().GetId(), "also this"))
		require.Equal(f, task.Working, answer.GetTask().GetStatus().GetState())
		require.Equal(f, c.GetVersion()+1, answer.GetVersion())
		notices := f.sent.take()
		require.Len(f, notices, 1)
		require.Empty(f, notices[0].Work)
		require.Len(f, notices[0].Controls, 1)
		control := notices[0].Controls[0]
		require.Equal(f, holder, control.Holder)
		require.Equal(f, c.GetLeaseEpoch(), control.Message.GetLeaseEpoch())
		require.Equal(f, answer.GetVersion(), control.Message.GetMessageAppended().GetVersion())
		more, err := f.store.ListUserMessages(f.Context(), &taskstorev1.ListUserMessagesRequest{
			Tenant: f.scope.GetTenant(), TaskId: c.GetTask().GetId(), After: 1,
		})
		require.NoError(f, err)
		require.Len(f, more.GetMessages(), 1)
		require.Equal(f, answer.GetVersion(), more.GetMessages()[0].GetVersion())
		require.Equal(f, []string{"text/plain"}, more.GetMessages()[0].GetRequest().GetAcceptedOutputModes())
	},
	"a message for a queued task waits with it": func(f *fixture) {
		id := f.start("go")
		f.sent.take()
		require.EqualValues(f, 2, f.accept(f.followUp(id, "also this")).GetVersion())
		notices := f.sent.take()
		require.Empty(f, notices[0].Work)
		require.Empty(f, notices[0].Controls)
		require.Len(f, f.claim(id).GetMessages(), 2)
	},
	"an agent may refuse messages while it runs": func(f *fixture) {
		c := f.running()
		r := f.followUp(c.GetTask().GetId(), "also this")
		r.WhileRunning = taskstorev1.FollowUpPolicy_FOLLOW_UP_POLICY_REFUSE
		_, err := f.tryAccept(r)
		f.refused(err, a2aerr.ReasonUnsupportedOperation)
		f.emit(c, status(task.InputRequired, "well?"))
		require.False(f, f.accept(r).GetDuplicate(), "a refused message is not remembered")
	},
	"a finished task takes no message": func(f *fixture) {
		for _, state := range []task.State{task.Completed, task.Failed, task.Canceled, task.Rejected} {
			id := f.settled(state).GetTask().GetId()
			before, version := f.get(id)
			_, err := f.tryAccept(f.followUp(id, "more"))
			f.refused(err, a2aerr.ReasonUnsupportedOperation)
			after, now := f.get(id)
			require.Equal(f, version, now)
			require.True(f, proto.Equal(before, after))
		}
	},
	"a retried message is not judged by what the task became": func(f *fixture) {
		c := f.running()
		id := c.GetTask().GetId()
		f.emit(c, status(task.InputRequired, "well?"))
		r := f.followUp(id, "yes")
		first := f.accept(r)
		f.sent.take()
		again := f.accept(r)
		require.True(f, again.GetDuplicate())
		require.Equal(f, first.GetAcceptedVersion(), again.GetAcceptedVersion())
		version := f.emit(f.claim(id), status(task.Completed, "done"))
		f.sent.take()
		again = f.accept(r)
		require.True(f, again.GetDuplicate())
		require.Equal(f, version, again.GetVersion())
		require.Equal(f, first.GetAcceptedVersion(), again.GetAcceptedVersion())
		require.Equal(f, []string{"go", "well?", "yes"}, history(again.GetTask()))
		require.Empty(f, f.sent.take())
	},
	"another context than the task's is refused and leaves no trace": func(f *fixture) {
		c := f.running()
		id := c.GetTask().GetId()
		version := f.emit(c, status(task.InputRequired, "well?"))
		r := f.followUp(id, "yes")
		r.Message.ContextId = "elsewhere"
		_, err := f.tryAccept(r)
		f.refused(err, a2aerr.ReasonInvalidParams)
		require.ErrorContains(f, err, "message.contextId")
		t, now := f.get(id)
		require.Equal(f, version, now)
		require.Equal(f, []string{"go"}, history(t))
		r.Message.ContextId = ""
		require.Equal(f, c.GetTask().GetContextId(), f.accept(r).GetTask().GetContextId())
	},
	"a task id that names nothing is not found and makes nothing": func(f *fixture) {
		for _, id := range []string{"made-up-1", task.NewID(), "a:b/c", "\u0000"} {
			r := f.followUp(id, "hello")
			_, err := f.tryAccept(r)
			f.refused(err, a2aerr.ReasonTaskNotFound)
			r.Message.TaskId = ""
			require.False(f, f.accept(r).GetDuplicate(), "a refused message is not remembered")
		}
	},
	"follow-ups at the same time start one execution": func(f *fixture) {
		c := f.running()
		id := c.GetTask().GetId()
		f.emit(c, status(task.InputRequired, "well?"))
		f.sent.take()
		var group sync.WaitGroup
		for i := range 20 {
			r := f.followUp(id, fmt.Sprint(i))
			group.Go(func() { _, _ = f.tryAccept(r) })
		}
		group.Wait()
		work := 0
		for _, n := range f.sent.take() {
			work += len(n.Work)
		}
		require.Equal(f, 1, work)
		require.Len(f, f.claim(id).GetMessages(), 21)
		require.Equal(f, taskstorev1.Refusal_REFUSAL_NOT_QUEUED, f.tryClaim(id).GetRefusal())
	},
	"a message keeps all that it came with": func(f *fixture) {
		m := f.newMessage("look")
		m.Parts = append(m.Parts,
			&a2apb.Part{Content: &a2apb.Part_Raw{Raw: []byte{0, 1, 255}}, MediaType: "image/png", Filename: "a.png"},
			&a2apb.Part{Content: &a2apb.Part_Url{Url: "https://example.com/x"}})
		m.ReferenceTaskIds, m.Extensions = []string{"t-1"}, []string{"https://example.com/ext"}
		t := f.accept(f.request(m)).GetTask()
		want := proto.CloneOf(m)
		want.TaskId, want.ContextId = t.GetId(), t.GetContextId()
		stored, _ := f.get(t.GetId())
		require.True(f, proto.Equal(want, stored.GetHistory()[0]))
	},
}
