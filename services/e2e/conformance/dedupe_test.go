package conformance_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/harness"
)

// A message is accepted once, over whatever binding its sender tries again:
// a blocking retry waits for the same end, a streaming one gets the task and
// then the rest (A2A §3.3.1).
func TestARetryGetsTheSameTask(t *testing.T) {
	t.Parallel()
	each(t, probeAgent, func(t *testing.T, c *caller) {
		hold := newHold(t)
		in := say(hold.text)
		first := c.send(changed(in, immediately))
		for _, other := range callers(t, c.cluster, c.agent) {
			require.Equal(t, first.GetId(), other.send(changed(in, immediately)).GetId())
		}
		hold.awaitRun(t)
		s := c.sendStream(in)
		require.Equal(t, first.GetId(), s.task().GetId())
		ends := make(chan *binding.Answer, 1)
		go func() {
			answer, err := c.Call(within(t), binding.SendMessage, in)
			if err != nil {
				t.Error(err)
			}
			ends <- answer
		}()
		hold.release()
		s.rest()
		blocking := (<-ends).Result.(*a2apb.SendMessageResponse).GetTask()
		require.Equal(t, first.GetId(), blocking.GetId())
		require.Equal(t, completed, state(blocking))
		require.Len(t, blocking.GetHistory(), 1)
		c.requireEqual(blocking, c.send(in))
		require.Empty(t, hold.running, "a second run")
	})
}

func changed(in *a2apb.SendMessageRequest, d detail) *a2apb.SendMessageRequest {
	other := proto.Clone(in).(*a2apb.SendMessageRequest)
	d(other)
	return other
}

// What is no part of the message may differ; what is may not.
func TestAnIDIsOfOneMessage(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		in := say("hello there")
		first := c.send(in)
		require.Equal(t, first.GetId(), c.send(changed(in, withHistory(0))).GetId())
		require.Equal(t, first.GetId(), c.send(changed(in, immediately)).GetId())
		for _, other := range []detail{
			func(in *a2apb.SendMessageRequest) { in.Message.Parts[0] = textPart("hello there.") },
			func(in *a2apb.SendMessageRequest) { in.Message.Parts[0].MediaType = "text/plain" },
			func(in *a2apb.SendMessageRequest) { in.Message.ReferenceTaskIds = []string{"x"} },
			toTask(first.GetId()), inContext(first.GetContextId()),
		} {
			c.invalid("message.messageId", binding.SendMessage, changed(in, other))
		}
		require.Len(t, c.get(first.GetId()).GetHistory(), 1)
	})
}

// Of many identical sends at the same time one makes the task.
func TestConcurrentRetriesMakeOneTask(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
		var runs atomic.Int32
		text := script(t, func(context.Context, *agent.Task) error {
			runs.Add(1)
			return nil
		})
		all := callers(t, cluster, probeAgent)
		in := say(text)
		ids := together(t, all, 50, in)
		for _, id := range ids {
			require.Equal(t, ids[0], id)
		}
		require.Equal(t, int32(1), runs.Load())
		require.Len(t, all[0].get(ids[0]).GetHistory(), 1)
	})
}

// together sends the same n times at once and returns the ids of the tasks, or
// of the Messages, in the answers.
func together(t *testing.T, all []*caller, n int, in *a2apb.SendMessageRequest) []string {
	t.Helper()
	ids := make([]string, n)
	var sends sync.WaitGroup
	for i := range n {
		sends.Go(func() {
			c := all[i%len(all)]
			answer, err := c.Call(within(t), binding.SendMessage, in)
			if err != nil || answer.Err != nil {
				t.Errorf("%s: %v %v", c.Name(), err, answer)
				return
			}
			response := answer.Result.(*a2apb.SendMessageResponse)
			ids[i] = response.GetTask().GetId() + response.GetMessage().GetMessageId()
		})
	}
	sends.Wait()
	return ids
}

// Direct Messages are remembered too: the first answer that was stored wins.
func TestARetryGetsTheSameMessage(t *testing.T) {
	t.Parallel()
	each(t, probeAgent, func(t *testing.T, c *caller) {
		var runs atomic.Int32
		text := quickScript(t, func(ctx context.Context, r *agent.Request) error {
			runs.Add(1)
			return r.Reply(agent.Text(uuid.NewString()))
		})
		in := say(text)
		first := c.reply(in)
		for _, other := range callers(t, c.cluster, c.agent) {
			other.requireEqual(first, other.reply(in))
		}
		require.Equal(t, int32(1), runs.Load())
		require.Len(t, c.sendStream(in).rest(), 1)
		c.invalid("message.messageId", binding.SendMessage, changed(in, inContext("another")))

		again := quickScript(t, func(ctx context.Context, r *agent.Request) error {
			return r.Reply(agent.Text(uuid.NewString()))
		})
		ids := together(t, callers(t, c.cluster, c.agent), 20, say(again))
		for _, id := range ids {
			require.Equal(t, ids[0], id)
		}
	})
}

// A follow-up that is sent again after the task moved on changes nothing, even
// when the task is over: only a new message is refused there.
func TestARetriedFollowUpChangesNothing(t *testing.T) {
	t.Parallel()
	each(t, probeAgent, func(t *testing.T, c *caller) {
		gate := make(chan struct{})
		var runs atomic.Int32
		text := script(t, func(ctx context.Context, task *agent.Task) error {
			if runs.Add(1) == 1 {
				return task.AskInput(ctx, agent.Text("?"))
			}
			<-gate
			return task.Complete(ctx)
		})
		asked := c.send(say(text))
		in := say("answer", toTask(asked.GetId()))
		c.send(changed(in, immediately))
		whileWorking := c.send(changed(in, immediately))
		require.Equal(t, working, state(whileWorking))
		close(gate)
		done := c.send(in)
		require.Equal(t, completed, state(done))
		c.requireEqual(done, c.send(in))
		c.requireEqual(done, c.send(changed(in, immediately)))
		require.Equal(t, []string{text, "?", "answer"}, texts(c.get(done.GetId()).GetHistory()))
		require.Equal(t, int32(2), runs.Load())
		c.refused(unsupportedOperation, binding.SendMessage, changed(in, as(uuid.NewString())))
		c.refusedStream(unsupportedOperation, binding.SendStreamingMessage, changed(in, as(uuid.NewString())))
	})
}

// The retry of a first message that waits for its sender answers at once; the
// retry of the answer to a question does not mistake the question for its end.
func TestABlockingRetryWaitsForAStateAboveItsMessage(t *testing.T) {
	t.Parallel()
	each(t, probeAgent, func(t *testing.T, c *caller) {
		hold := make(chan struct{})
		text := script(t, func(ctx context.Context, task *agent.Task) error {
			if len(task.Messages()) == 1 {
				return task.AskInput(ctx, agent.Text("?"))
			}
			<-hold
			return task.Complete(ctx)
		})
		in := say(text)
		asked := c.send(in)
		c.requireEqual(asked, c.send(in))
		answer := say("answer", toTask(asked.GetId()))
		c.send(changed(answer, immediately))
		ended := make(chan *binding.Answer, 1)
		go func() {
			got, err := c.Call(within(t), binding.SendMessage, answer)
			if err != nil {
				t.Error(err)
			}
			ended <- got
		}()
		pause(t, 50)
		require.Empty(t, ended)
		close(hold)
		require.Equal(t, completed, state((<-ended).Result.(*a2apb.SendMessageResponse).GetTask()))
	})
}

// An agent can be set to take the same id again, as the official kit needs it.
func TestDedupeCanBeOff(t *testing.T) {
	t.Parallel()
	each(t, tckAgent, func(t *testing.T, c *caller) {
		in := say("x", as("tck-complete-task-"+uuid.NewString()))
		first, second := c.send(in), c.send(in)
		require.NotEqual(t, first.GetId(), second.GetId())
		require.Equal(t, completed, state(second))
	})
}

// The id is of one agent: another has not seen it.
func TestAnIDIsOfOneAgent(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		id := uuid.NewString()
		first := c.send(say("echo", as(id)))
		other := c.to(plainAgent).send(say("another text", as(id)))
		require.NotEqual(t, first.GetId(), other.GetId())
	})
}
