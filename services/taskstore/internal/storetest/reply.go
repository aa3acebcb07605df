package storetest

import (
	"sync"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
)

func (f *fixture) replyTo(m *a2apb.Message, text string) *taskstorev1.StoreReplyRequest {
	return &taskstorev1.StoreReplyRequest{
		Scope: f.scope, Message: m, Dedupe: true, Fingerprint: task.Fingerprint(m),
		Reply: &a2apb.Message{MessageId: "r-" + text, Role: a2apb.Role_ROLE_AGENT, ContextId: "c1", Parts: []*a2apb.Part{part(text)}},
	}
}

func (f *fixture) tryReply(r *taskstorev1.StoreReplyRequest) (*taskstorev1.StoreReplyResponse, error) {
	result := f.store.StoreReplies(f.Context(), []*taskstorev1.StoreReplyRequest{r})[0]
	return result.Value, result.Err
}

func (f *fixture) reply(r *taskstorev1.StoreReplyRequest) *taskstorev1.StoreReplyResponse {
	f.Helper()
	answer, err := f.tryReply(r)
	require.NoError(f, err)
	return answer
}

func (f *fixture) find(m *a2apb.Message) (*taskstorev1.FindMessageResponse, error) {
	return f.store.FindMessage(f.Context(), &taskstorev1.FindMessageRequest{
		Scope: f.scope, MessageId: m.GetMessageId(), Fingerprint: task.Fingerprint(m),
	})
}

var replyCases = map[string]func(*fixture){
	"the first reply to a message is the one": func(f *fixture) {
		m := f.newMessage("hi")
		first := f.reply(f.replyTo(m, "one"))
		require.False(f, first.GetDuplicate())
		require.Equal(f, "one", texts(first.GetReply().GetParts()))
		second := f.reply(f.replyTo(m, "two"))
		require.True(f, second.GetDuplicate())
		require.True(f, proto.Equal(first.GetReply(), second.GetReply()))
		require.Empty(f, f.sent.take(), "there is no task to tell of")
	},
	"a message that was answered directly starts no task": func(f *fixture) {
		m := f.newMessage("hi")
		f.reply(f.replyTo(m, "one"))
		answer := f.accept(f.request(m))
		require.True(f, answer.GetDuplicate())
		require.Equal(f, "one", texts(answer.GetReply().GetParts()))
	},
	"a message that started a task is not answered directly": func(f *fixture) {
		m := f.newMessage("hi")
		id := f.accept(f.request(m)).GetTask().GetId()
		answer := f.reply(f.replyTo(m, "one"))
		require.True(f, answer.GetDuplicate())
		require.Equal(f, id, answer.GetTask().GetId())
		require.EqualValues(f, 1, answer.GetAcceptedVersion())
	},
	"reply and task at the same time: one wins for all": func(f *fixture) {
		m := f.newMessage("hi")
		var reply *taskstorev1.StoreReplyResponse
		var accepted *taskstorev1.AcceptMessageResponse
		var group sync.WaitGroup
		group.Go(func() { reply, _ = f.tryReply(f.replyTo(m, "one")) })
		group.Go(func() { accepted, _ = f.tryAccept(f.request(m)) })
		group.Wait()
		require.NotEqual(f, reply.GetDuplicate(), accepted.GetDuplicate())
		require.Equal(f, reply.GetTask().GetId(), accepted.GetTask().GetId())
		require.Equal(f, reply.GetReply().GetMessageId(), accepted.GetReply().GetMessageId())
	},
	"another content under a known id is refused": func(f *fixture) {
		m := f.newMessage("hi")
		f.reply(f.replyTo(m, "one"))
		other := proto.CloneOf(m)
		other.Parts = nil
		_, err := f.tryReply(f.replyTo(other, "two"))
		f.refused(err, a2aerr.ReasonInvalidParams)
		_, err = f.find(other)
		f.refused(err, a2aerr.ReasonInvalidParams)
	},
	"a reply without dedupe is kept each time": func(f *fixture) {
		r := f.replyTo(f.newMessage("hi"), "one")
		r.Dedupe, r.Fingerprint = false, nil
		require.False(f, f.reply(r).GetDuplicate())
		require.False(f, f.reply(r).GetDuplicate())
	},
	"a reply names its context": func(f *fixture) {
		r := f.replyTo(f.newMessage("hi"), "one")
		r.Reply.ContextId = ""
		_, err := f.tryReply(r)
		f.refused(err, a2aerr.ReasonInvalidParams)
	},
	"a message is found by what it became": func(f *fixture) {
		m := f.newMessage("hi")
		found, err := f.find(m)
		require.NoError(f, err)
		require.Nil(f, found.GetOutcome())
		f.reply(f.replyTo(m, "one"))
		found, err = f.find(m)
		require.NoError(f, err)
		require.Equal(f, "one", texts(found.GetReply().GetParts()))
		m = f.newMessage("work")
		id := f.accept(f.request(m)).GetTask().GetId()
		found, err = f.find(m)
		require.NoError(f, err)
		require.Equal(f, id, found.GetTask().GetId())
		require.EqualValues(f, 1, found.GetVersion())
		require.EqualValues(f, 1, found.GetAcceptedVersion())
	},
}
