package conformance_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/harness"
)

// CORE-STREAM-001, CORE-STREAM-003, STREAM-ORDER-001, GRPC-ERR-003,
// JSONRPC-SSE-001, HTTP_JSON-SSE-001, A2A §3.1.2.
func TestATaskStreamBeginsWithTheTaskAndEndsWithItsEnd(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		events := c.sendStream(say("chunks 3")).rest()
		c.requireGrowingIDs(events)
		told := c.replay(events)
		require.Equal(t, completed, state(told))
		require.Equal(t, completed, events[len(events)-1].GetStatusUpdate().GetStatus().GetState())

		var chunks []*a2apb.TaskArtifactUpdateEvent
		for _, e := range events {
			if e.GetArtifactUpdate() != nil {
				chunks = append(chunks, e.GetArtifactUpdate())
			}
		}
		require.Len(t, chunks, 3)
		for i, chunk := range chunks {
			require.Equal(t, "a1", chunk.GetArtifact().GetArtifactId())
			require.Equal(t, i > 0, chunk.GetAppend())
			require.Equal(t, i == 2, chunk.GetLastChunk())
		}
		stored := c.get(told.GetId())
		c.requireSame(told, stored)
		require.Len(t, stored.GetArtifacts(), 1)
		require.Len(t, stored.GetArtifacts()[0].GetParts(), 3)
	})
}

// CORE-STREAM-002, A2A §3.1.2: a second Message of the agent is not sent.
func TestAMessageStreamHasOneMessage(t *testing.T) {
	t.Parallel()
	each(t, probeAgent, func(t *testing.T, c *caller) {
		second := make(chan error, 1)
		text := quickScript(t, func(ctx context.Context, r *agent.Request) error {
			err := r.Reply(agent.Text("one"))
			second <- r.Reply(agent.Text("two"))
			return err
		})
		events := c.sendStream(say(text)).rest()
		require.Len(t, events, 1)
		require.Equal(t, "one", textOf(events[0].GetMessage().GetParts()))
		require.ErrorIs(t, <-second, agent.ErrReplied)

		events = c.to(defaultAgent).sendStream(say("msg")).rest()
		require.Len(t, events, 1)
		require.NotNil(t, events[0].GetMessage())
	})
}

// A2A §3.1.2, §11.7: a send stream ends at a question, a subscription does not.
func TestAQuestionEndsTheSendStreamAndNotTheSubscription(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		events := c.sendStream(say("ask")).rest()
		asked := c.replay(events)
		require.Equal(t, inputRequired, state(asked))

		watch := c.subscribe(asked.GetId())
		first := watch.task()
		require.Equal(t, inputRequired, state(first))

		answered := c.sendStream(say("blue", toTask(asked.GetId()))).rest()
		require.Equal(t, asked.GetId(), answered[0].GetTask().GetId())
		history := texts(answered[0].GetTask().GetHistory())
		require.Contains(t, history, "blue")
		require.Equal(t, completed, state(c.replay(answered)))

		seen := watch.rest()
		require.Equal(t, completed, seen[len(seen)-1].GetStatusUpdate().GetStatus().GetState())
	})
}

// AUTH-INTASK-001, AUTH-INTASK-002, AUTH-INTASK-003, AUTH-INTASK-005,
// AUTH-INTASK-006, A2A §7.6: streams stay open, messages resume.
func TestAuthorizationInTheMiddleOfATaskKeepsStreamsOpen(t *testing.T) {
	t.Parallel()
	each(t, probeAgent, func(t *testing.T, c *caller) {
		text := script(t, func(ctx context.Context, task *agent.Task) error {
			if len(task.Messages()) == 1 {
				return task.AskAuth(ctx, "", agent.Text("may I read your mail?"))
			}
			return task.Emit(ctx, artifact("mail", "read"))
		})
		s := c.sendStream(say(text))
		parked := c.replay(s.until(inState(authRequired)))
		require.Equal(t, "may I read your mail?", statusText(parked))
		require.Equal(t, authRequired, state(c.get(parked.GetId())))
		watch := c.subscribe(parked.GetId())
		require.Equal(t, authRequired, state(watch.task()))

		require.Equal(t, completed, state(c.send(say("you may", toTask(parked.GetId())))))
		for _, open := range []*stream{s, watch} {
			events := open.rest()
			require.Equal(t, completed, events[len(events)-1].GetStatusUpdate().GetStatus().GetState())
		}
	})
}

// AUTH-INTASK-004, A2A §7.6: credentials come out of band; the agent's own
// call-back resumes.
func TestAGrantResumesATaskOnce(t *testing.T) {
	t.Parallel()
	each(t, probeAgent, func(t *testing.T, c *caller) {
		grants := make(chan string, 2)
		text := script(t, func(ctx context.Context, task *agent.Task) error {
			if len(task.NewMessages()) == 0 {
				return task.Complete(ctx, agent.Text("thanks"))
			}
			grant := task.NewGrant()
			grants <- grant
			return task.AskAuth(ctx, grant, agent.Text("sign in"))
		})
		s := c.sendStream(say(text))
		parked := c.replay(s.until(inState(authRequired)))
		grant := <-grants
		require.NotContains(t, fmt.Sprint(parked), grant)
		require.Error(t, c.cluster.Resume(t, grant+"x"))
		require.NoError(t, c.cluster.Resume(t, grant))
		events := s.rest()
		require.Equal(t, completed, events[len(events)-1].GetStatusUpdate().GetStatus().GetState())
		require.Error(t, c.cluster.Resume(t, grant))
	})
}

// A2A §10.5 of the bindings: what is known before the first event is an error
// and no stream. CORE-ERR-002, STREAM-SUB-004.
func TestAStreamIsRefusedBeforeItBegins(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		done := c.send(say("echo"))
		c.refusedStream(taskNotFound, binding.SubscribeToTask, &a2apb.SubscribeToTaskRequest{Id: "nope"})
		c.refusedStream(unsupportedOperation, binding.SubscribeToTask, &a2apb.SubscribeToTaskRequest{Id: done.GetId()})
		noParts := say("x")
		noParts.Message.Parts = nil
		got := c.refusedStream(invalidParams, binding.SendStreamingMessage, noParts)
		require.Equal(t, []string{"message.parts"}, got.Fields())
	})
}

// The official Go client reads nothing but events from a stream that it asked
// for with Accept, so there a refused send is one error event.
func TestARefusedSendThatAsksForEventsGetsAnErrorEvent(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
		c := callers(t, cluster, defaultAgent)[0]
		accept := binding.With("Accept", "text/event-stream")
		noParts := say("x")
		noParts.Message.Parts = nil
		s := c.sendStream(noParts, accept)
		_, err := s.Next()
		var got *binding.Error
		require.ErrorAs(t, err, &got)
		require.Equal(t, -32602, got.JSONRPC)
		require.Equal(t, []string{"message.parts"}, got.Fields())
		_, err = s.Next()
		require.ErrorIs(t, err, io.EOF)

		c.refusedStream(taskNotFound, binding.SubscribeToTask, &a2apb.SubscribeToTaskRequest{Id: "nope"}, accept)
	})
}

// CORE-CAP-002, A2A §3.3.4.
func TestStreamingThatTheCardDoesNotDeclareIsUnsupported(t *testing.T) {
	t.Parallel()
	each(t, plainAgent, func(t *testing.T, c *caller) {
		require.Equal(t, completed, state(c.send(say("echo"))))
		asked := c.send(say("ask"))
		c.refusedStream(unsupportedOperation, binding.SendStreamingMessage, say("echo"))
		c.refusedStream(unsupportedOperation, binding.SubscribeToTask, &a2apb.SubscribeToTaskRequest{Id: asked.GetId()})
	})
}

// Events far above the 64 KiB of line readers arrive whole on every path.
func TestBigEventsArriveWhole(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		for _, size := range []int{70_000, 1_200_000} {
			told := c.replay(c.sendStream(say(fmt.Sprintf("big %d", size))).rest())
			require.Equal(t, completed, state(told))
			require.Len(t, wholeOf(told), size)
			c.requireSame(told, c.get(told.GetId()))
		}
	})
}

// Beyond the limit a task fails with a reason; nothing is cut and nothing hangs.
func TestWhatIsTooBigFailsTheTaskWithAReason(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		for _, size := range []int{3_000_000, 9_000_000} {
			told := c.replay(c.sendStream(say(fmt.Sprintf("big %d", size))).rest())
			require.Equal(t, failed, state(told))
			require.NotEmpty(t, statusText(told))
			requireNoInsides(t, statusText(told))
			require.Empty(t, wholeOf(told))
		}
	})
}

// wholeOf is the content of all artifacts.
func wholeOf(task *a2apb.Task) string {
	var whole strings.Builder
	for _, a := range task.GetArtifacts() {
		for _, p := range a.GetParts() {
			whole.WriteString(p.GetText())
			whole.Write(p.GetRaw())
		}
	}
	return whole.String()
}
