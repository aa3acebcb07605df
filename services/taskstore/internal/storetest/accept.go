package storetest

import (
	"strings"
	"sync"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
)

// refused requires an error of the table that senders see.
func (f *fixture) refused(err error, reason string) {
	f.Helper()
	require.Error(f, err)
	require.Equal(f, reason, a2aerr.From(err).Reason, "%v", err)
}

var acceptCases = map[string]func(*fixture){
	"a message starts a task": func(f *fixture) {
		r := f.request(f.newMessage("hello"))
		answer := f.accept(r)
		t := answer.GetTask()
		require.Equal(f, r.GetNewTaskId(), t.GetId())
		require.Equal(f, r.GetNewContextId(), t.GetContextId())
		require.Equal(f, task.Submitted, t.GetStatus().GetState())
		require.Equal(f, []string{"hello"}, history(t))
		require.Equal(f, t.GetId(), t.GetHistory()[0].GetTaskId(), "a stored message says where it belongs")
		require.Equal(f, t.GetContextId(), t.GetHistory()[0].GetContextId())
		require.EqualValues(f, 1, answer.GetVersion())
		require.EqualValues(f, 1, answer.GetAcceptedVersion())
		require.False(f, answer.GetDuplicate())
		stored, version := f.get(t.GetId())
		require.True(f, proto.Equal(t, stored), "the answer is what is stored")
		require.EqualValues(f, 1, version)
	},
	"a started task is told and queued": func(f *fixture) {
		id := f.start("hello")
		notices := f.sent.take()
		require.Len(f, notices, 1)
		require.Len(f, notices[0].Events, 1)
		require.Equal(f, id, notices[0].Events[0].GetCreated().GetId())
		require.Len(f, notices[0].Work, 1)
		work := notices[0].Work[0]
		require.Equal(f, []string{f.scope.GetTenant(), f.scope.GetAgent(), id}, []string{work.GetTenant(), work.GetAgent(), work.GetTaskId()})
		require.EqualValues(f, 1, work.GetVersion())
		require.EqualValues(f, 1, work.GetEnqueueCount())
		require.Empty(f, notices[0].Controls)
	},
	"a context that the sender names is kept": func(f *fixture) {
		m := f.newMessage("hello")
		m.ContextId = "my context: ünï/1"
		require.Equal(f, m.GetContextId(), f.accept(f.request(m)).GetTask().GetContextId())
	},
	"a task in an old context has nothing of the task before": func(f *fixture) {
		first := f.running()
		f.emit(first, chunk("a1", "one", false), status(task.Completed, "done"))
		m := f.newMessage("again")
		m.ContextId = first.GetTask().GetContextId()
		second := f.accept(f.request(m)).GetTask()
		require.NotEqual(f, first.GetTask().GetId(), second.GetId())
		t, _ := f.get(second.GetId())
		require.Empty(f, t.GetArtifacts())
		require.Equal(f, []string{"again"}, history(t))
	},
	"the same message again gets the same task and changes nothing": func(f *fixture) {
		r := f.request(f.newMessage("hello"))
		first := f.accept(r)
		f.sent.take()
		retry := proto.CloneOf(r)
		retry.NewTaskId, retry.NewContextId = task.NewID(), task.NewID()
		second := f.accept(retry)
		require.True(f, second.GetDuplicate())
		require.True(f, proto.Equal(first.GetTask(), second.GetTask()))
		require.EqualValues(f, 1, second.GetAcceptedVersion())
		require.Empty(f, f.sent.take())
		_, err := f.store.GetTask(f.Context(), &taskstorev1.GetTaskRequest{Scope: f.scope, TaskId: retry.GetNewTaskId()})
		f.refused(err, a2aerr.ReasonTaskNotFound)
	},
	"a retry gets the task as it is by now": func(f *fixture) {
		r := f.request(f.newMessage("hello"))
		c := f.claim(f.accept(r).GetTask().GetId())
		version := f.emit(c, status(task.Completed, "done"))
		answer := f.accept(r)
		require.Equal(f, task.Completed, answer.GetTask().GetStatus().GetState())
		require.Equal(f, version, answer.GetVersion())
		require.EqualValues(f, 1, answer.GetAcceptedVersion())
	},
	"the same id with another content is refused": func(f *fixture) {
		m := f.newMessage("hello")
		f.accept(f.request(m))
		f.sent.take()
		other := proto.CloneOf(m)
		other.Parts = []*a2apb.Part{part("goodbye")}
		_, err := f.tryAccept(f.request(other))
		f.refused(err, a2aerr.ReasonInvalidParams)
		require.ErrorContains(f, err, "message.messageId")
		require.Empty(f, f.sent.take())
	},
	"without dedupe the same id makes a task each time": func(f *fixture) {
		r := f.request(f.newMessage("hello"))
		r.Dedupe, r.Fingerprint = false, nil
		again := proto.CloneOf(r)
		again.NewTaskId = task.NewID()
		require.NotEqual(f, f.accept(r).GetTask().GetId(), f.accept(again).GetTask().GetId())
	},
	"a message id belongs to its tenant, subject and agent": func(f *fixture) {
		r := f.request(f.newMessage("hello"))
		seen := map[string]bool{f.accept(r).GetTask().GetId(): true}
		for _, change := range []func(*taskstorev1.Scope){
			func(s *taskstorev1.Scope) { s.Tenant += "-2" },
			func(s *taskstorev1.Scope) { s.Subject += "-2" },
			func(s *taskstorev1.Scope) { s.Agent += "-2" },
		} {
			other := proto.CloneOf(r)
			other.NewTaskId = task.NewID()
			change(other.GetScope())
			answer := f.accept(other)
			require.False(f, answer.GetDuplicate())
			seen[answer.GetTask().GetId()] = true
		}
		require.Len(f, seen, 4)
	},
	"identical messages at the same time make one task": func(f *fixture) {
		r := f.request(f.newMessage("hello"))
		ids := make([]string, 50)
		var group sync.WaitGroup
		for i := range ids {
			group.Go(func() {
				one := proto.CloneOf(r)
				one.NewTaskId = task.NewID()
				answer, err := f.tryAccept(one)
				if err == nil {
					ids[i] = answer.GetTask().GetId()
				}
			})
		}
		group.Wait()
		for _, id := range ids {
			require.NotEmpty(f, id)
			require.Equal(f, ids[0], id)
		}
		notices := f.sent.take()
		require.Len(f, notices, 1, "one is queued and told of")
	},
	"the history length of the answer is the request's": func(f *fixture) {
		r := f.request(f.newMessage("hello"))
		r.HistoryLength = proto.Int32(0)
		require.Empty(f, f.accept(r).GetTask().GetHistory())
		r.HistoryLength = proto.Int32(5)
		require.Len(f, f.accept(r).GetTask().GetHistory(), 1)
		r.HistoryLength = proto.Int32(-1)
		_, err := f.tryAccept(r)
		f.refused(err, a2aerr.ReasonInvalidParams)
	},
	"what rows can't hold is refused by name": func(f *fixture) {
		long := strings.Repeat("x", 257)
		for field, change := range map[string]func(*taskstorev1.AcceptMessageRequest){
			"message":           func(r *taskstorev1.AcceptMessageRequest) { r.Message = nil },
			"message.messageId": func(r *taskstorev1.AcceptMessageRequest) { r.Message.MessageId = long },
			"message.contextId": func(r *taskstorev1.AcceptMessageRequest) { r.Message.ContextId = long },
			"scope.tenant":      func(r *taskstorev1.AcceptMessageRequest) { r.Scope.Tenant = "" },
			"scope.agent":       func(r *taskstorev1.AcceptMessageRequest) { r.Scope.Agent = "a\x00b" },
			"scope.subject":     func(r *taskstorev1.AcceptMessageRequest) { r.Scope.Subject = "" },
			"newTaskId":         func(r *taskstorev1.AcceptMessageRequest) { r.NewTaskId = "mine" },
			"fingerprint":       func(r *taskstorev1.AcceptMessageRequest) { r.Fingerprint = []byte("short") },
		} {
			r := proto.CloneOf(f.request(f.newMessage("hello")))
			change(r)
			_, err := f.tryAccept(r)
			f.refused(err, a2aerr.ReasonInvalidParams)
			require.ErrorContains(f, err, field)
		}
		for _, id := range []string{"", "a\x00b"} {
			r := proto.CloneOf(f.request(f.newMessage("hello")))
			r.Message.MessageId = id
			_, err := f.tryAccept(r)
			f.refused(err, a2aerr.ReasonInvalidParams)
		}
		for _, name := range []string{"a.b", "*", "Acme", "a b", "ä", strings.Repeat("a", 101)} {
			r := proto.CloneOf(f.request(f.newMessage("hello")))
			r.Scope.Tenant = name
			_, err := f.tryAccept(r)
			f.refused(err, a2aerr.ReasonInvalidParams)
		}
		require.Empty(f, f.sent.take())
	},
	"a message over the limit is refused": func(f *fixture) {
		_, err := f.tryAccept(f.request(f.newMessage(strings.Repeat("x", eventLimit+1))))
		f.refused(err, a2aerr.ReasonTooLarge)
	},
	"long ids that differ at the end stay apart": func(f *fixture) {
		prefix := strings.Repeat("i", 255)
		ids := map[string]bool{}
		for _, end := range []string{"a", "b"} {
			m := f.newMessage("hello")
			m.MessageId, m.ContextId = prefix+end, prefix+end
			t := f.accept(f.request(m)).GetTask()
			require.Equal(f, prefix+end, t.GetContextId())
			ids[t.GetId()] = true
		}
		require.Len(f, ids, 2)
	},
	"times are cut to milliseconds": func(f *fixture) {
		f.clock.advance(456_789 * time.Nanosecond)
		t := f.accept(f.request(f.newMessage("hello"))).GetTask()
		require.Equal(f, "2026-03-01T09:00:00.123Z", t.GetStatus().GetTimestamp().AsTime().Format(time.RFC3339Nano))
		stored, _ := f.get(t.GetId())
		require.True(f, proto.Equal(t, stored))
	},
}
