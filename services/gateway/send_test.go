package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	executorv1 "github.com/errandhq/errand/proto/gen/errand/executor/v1"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/queue"
	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/pkg/testkit"
)

// say is a blocking send; fields are added to the message.
func say(messageID, text string, fields ...string) string {
	return fmt.Sprintf(`{"message":{"messageId":%q,"role":"ROLE_USER","parts":[{"text":%q}]%s}}`, messageID, text, strings.Join(append([]string{""}, fields...), ","))
}

func atOnce(params string) string {
	return strings.TrimSuffix(params, "}") + `,"configuration":{"returnImmediately":true}}`
}

// scripted plays an agent: it echoes, asks, or waits for the test.
func scripted(store *memory) {
	store.queued = func(id, text string) {
		switch text {
		case "wait":
		case "ask":
			store.emit(id, status(task.Working, ""), status(task.InputRequired, "which?"))
		case "auth":
			store.emit(id, status(task.Working, ""), status(task.AuthRequired, "log in"))
		default:
			store.emit(id, status(task.Working, "on it"), artifact("a1", text, false), artifact("a1", "!", true), status(task.Completed, ""))
		}
	}
}

func TestBlockingSendsAnswerWithTheSettledTask(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		scripted(b.store)
		got := over.call(t.Context(), b, "SendMessage", say("m1", "hi")).task(t)
		require.Equal(t, task.Completed, got.GetStatus().GetState())
		require.Len(t, got.GetArtifacts(), 1)
		require.Len(t, got.GetArtifacts()[0].GetParts(), 2)
		require.Len(t, got.GetHistory(), 2)
		require.Equal(t, got.String(), over.call(t.Context(), b, "GetTask", `{"id":"`+got.GetId()+`"}`).task(t).String())

		require.Equal(t, task.InputRequired, over.call(t.Context(), b, "SendMessage", say("m2", "ask")).task(t).GetStatus().GetState())
		require.Equal(t, task.AuthRequired, over.call(t.Context(), b, "SendMessage", say("m3", "auth")).task(t).GetStatus().GetState())
	})
}

func TestABlockingFollowUpWaitsForTheNextSettledState(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		scripted(b.store)
		asked := over.call(t.Context(), b, "SendMessage", say("m1", "ask")).task(t)
		got := over.call(t.Context(), b, "SendMessage", say("m2", "blue", `"taskId":"`+asked.GetId()+`"`)).task(t)
		require.Equal(t, task.Completed, got.GetStatus().GetState())
		require.Equal(t, asked.GetContextId(), got.GetContextId())
		require.Equal(t, asked.GetId(), got.GetId())
	})
}

func TestReturnImmediatelyDoesNotWait(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		got := over.call(t.Context(), b, "SendMessage", atOnce(say("m1", "wait"))).task(t)
		require.Equal(t, task.Submitted, got.GetStatus().GetState())
		require.NotEmpty(t, got.GetContextId())
	})
}

func TestUnknownMembersAreIgnoredSoTheSendBlocks(t *testing.T) {
	t.Parallel()
	for name, over := range map[string]binding{"HTTP+JSON": overREST{}, "JSON-RPC": overJSONRPC{}} {
		b := newBench(t)
		scripted(b.store)
		got := over.call(t.Context(), b, "SendMessage", `{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"hi","futureField":{"a":[1]}}]},"configuration":{"blocking":false,"newThing":1},"x":true}`)
		require.Equal(t, task.Completed, got.task(t).GetStatus().GetState(), name)
	}
}

func TestHistoryLengthAppliesToSends(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		scripted(b.store)
		for length, want := range map[string]int{"0": 0, "1": 1, "50": 2, `"1"`: 1} {
			got := over.call(t.Context(), b, "SendMessage",
				strings.TrimSuffix(say("m"+task.NewID(), "hi"), "}")+`,"configuration":{"historyLength":`+length+`}}`)
			require.Len(t, got.task(t).GetHistory(), want, length)
			require.Equal(t, want > 0, strings.Contains(got.result, `"history"`), "no member at all for none")
		}
	})
}

func TestDuplicatesWaitAndGetTheSameTask(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var answers [12]*a2apb.Task
	var senders sync.WaitGroup
	i := 0
	for range 4 {
		for _, over := range bindings {
			at := i
			senders.Go(func() { answers[at] = over.call(t.Context(), b, "SendMessage", say("m1", "wait")).task(t) })
			i++
		}
	}
	require.Eventually(t, func() bool {
		b.store.mu.Lock()
		defer b.store.mu.Unlock()
		return b.store.writes == 12
	}, 10*time.Second, time.Millisecond)
	require.Len(t, b.store.tasks, 1)
	for id := range b.store.tasks {
		b.store.emit(id, status(task.Working, ""), status(task.Completed, ""))
	}
	senders.Wait()
	for _, got := range answers {
		require.Equal(t, task.Completed, got.GetStatus().GetState())
		require.Equal(t, answers[0].GetId(), got.GetId())
	}
}

func TestARetryAfterTheTaskMovedOnGetsItAsItIs(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		scripted(b.store)
		asked := over.call(t.Context(), b, "SendMessage", say("m1", "ask")).task(t)
		followUp := say("m2", "blue", `"taskId":"`+asked.GetId()+`"`)
		done := over.call(t.Context(), b, "SendMessage", followUp).task(t)
		again := over.call(t.Context(), b, "SendMessage", followUp).task(t)
		require.Equal(t, done.String(), again.String())
		require.Equal(t, done.String(), over.call(t.Context(), b, "SendMessage", say("m1", "ask")).task(t).String())

		other := over.call(t.Context(), b, "SendMessage", say("m1", "another content"))
		require.Equal(t, "message.messageId", other.failed.field)
		late := over.call(t.Context(), b, "SendMessage", say("m3", "more", `"taskId":"`+asked.GetId()+`"`))
		require.Equal(t, a2aerr.ReasonUnsupportedOperation, late.failed.reason)
	})
}

func TestWithoutDedupeEachSendIsATask(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		first := over.call(t.Context(), b, "SendMessage", to("self.repeat")).task(t)
		second := over.call(t.Context(), b, "SendMessage", to("self.repeat")).task(t)
		require.NotEqual(t, first.GetId(), second.GetId())
	})
}

func TestFollowUpsThatCannotBeTaken(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		scripted(b.store)
		unknown := over.call(t.Context(), b, "SendMessage", say("m1", "x", `"taskId":"made-up-1"`))
		require.Equal(t, a2aerr.ReasonTaskNotFound, unknown.failed.reason)
		require.Empty(t, b.store.tasks)
		require.NotEmpty(t, over.call(t.Context(), b, "SendMessage", say("m1", "x", `"taskId":""`)).task(t).GetId(), "an empty id is none")

		asked := over.call(t.Context(), b, "SendMessage", say("m2", "ask")).task(t)
		mismatch := over.call(t.Context(), b, "SendMessage", say("m3", "x", `"taskId":"`+asked.GetId()+`"`, `"contextId":"c2"`))
		require.Equal(t, "message.contextId", mismatch.failed.field)

		running := over.call(t.Context(), b, "SendMessage", strings.Replace(atOnce(say("m4", "wait")), `{"message"`, `{"tenant":"self.busy","message"`, 1)).task(t)
		refused := over.call(t.Context(), b, "SendMessage", `{"tenant":"self.busy",`+say("m5", "x", `"taskId":"`+running.GetId()+`"`)[1:])
		require.Equal(t, a2aerr.ReasonUnsupportedOperation, refused.failed.reason)
	})
}

func TestAWaitNeedsNoNotifierToEnd(t *testing.T) {
	t.Parallel()
	for name, notifier := range map[string]*notices{"events get lost": {deaf: true}, "out of reach": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBenchWith(t, notifier)
			b.store.queued = func(id, _ string) {
				time.AfterFunc(300*time.Millisecond, func() { b.store.emit(id, status(task.Working, ""), status(task.Completed, "")) })
			}
			require.Equal(t, task.Completed, overREST{}.call(t.Context(), b, "SendMessage", say("m1", "x")).task(t).GetStatus().GetState())
		})
	}
}

func TestTheWaitEndsWithTheTaskAsItIs(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t, withAgents(strings.Replace(defaultAgents, "wait: 10s", "wait: 150ms", 1)))
		b.store.queued = func(id, _ string) { b.store.emit(id, status(task.Working, "")) }
		require.Equal(t, task.Working, over.call(t.Context(), b, "SendMessage", say("m1", "x")).task(t).GetStatus().GetState())
	})
}

func TestOnlySoManySendsWait(t *testing.T) {
	t.Parallel()
	b := newBench(t, withAgents(strings.Replace(defaultAgents, "limits: {", "limits: {waits: 1, ", 1)))
	ctx, cancel := context.WithCancel(t.Context())
	var first sync.WaitGroup
	first.Go(func() { overGRPC{}.call(ctx, b, "SendMessage", say("m1", "wait")) })
	waitForTasks(t, b, 1)
	refused := overREST{}.call(t.Context(), b, "SendMessage", say("m2", "wait"))
	require.Equal(t, 503, refused.failed.http)
	require.Equal(t, "1", refused.header.Get("Retry-After"))
	require.Len(t, b.store.tasks, 1, "it was refused before it was accepted")
	require.Nil(t, overREST{}.call(t.Context(), b, "SendMessage", atOnce(say("m2", "wait"))).failed)
	cancel()
	first.Wait()
	require.Eventually(t, func() bool {
		b.store.queued = func(id, _ string) { b.store.emit(id, status(task.Canceled, "")) }
		return overREST{}.call(t.Context(), b, "SendMessage", say("m3", "x")).failed == nil
	}, 10*time.Second, 10*time.Millisecond, "a sender that went away waits no more")
}

func waitForTasks(t *testing.T, b *bench, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		b.store.mu.Lock()
		defer b.store.mu.Unlock()
		return len(b.store.tasks) == n
	}, 10*time.Second, time.Millisecond)
}

func TestASenderThatGoesAwayChangesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i, over := range []binding{overGRPC{}, overREST{}, overJSONRPC{}} {
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			leave(ctx, b, over, fmt.Sprint("m", i))
		}()
		waitForTasks(t, b, i+1)
		cancel()
		<-gone
	}
	for id := range b.store.tasks {
		b.store.emit(id, status(task.Working, ""), status(task.Completed, ""))
		require.Equal(t, task.Completed, overREST{}.call(t.Context(), b, "GetTask", `{"id":"`+id+`"}`).task(t).GetStatus().GetState())
	}
}

func TestAnAcceptanceThatWasBegunIsFinished(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		begun, gone := make(chan struct{}), make(chan struct{})
		b.store.hold = func(ctx context.Context) error {
			close(begun)
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-gone:
				// The sender's connection is closed; its end may take a moment to get here.
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(100 * time.Millisecond):
					return nil
				}
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-begun
			cancel()
			close(gone)
		}()
		leave(ctx, b, over, "m1")
		waitForTasks(t, b, 1)
	})
}

// leave sends and doesn't care about the answer.
func leave(ctx context.Context, b *bench, over binding, messageID string) {
	if _, ok := over.(overGRPC); ok {
		over.call(ctx, b, "SendMessage", say(messageID, "wait"))
		return
	}
	method, path, body := "POST", "/rpc", envelope("SendMessage", say(messageID, "wait"))
	if _, ok := over.(overREST); ok {
		path, body = "/message:send", say(messageID, "wait")
	}
	if res, err := b.request(ctx, method, path, body); err == nil {
		res.Body.Close()
	}
}

// answer starts an executor for direct Messages of an agent.
func answer(t *testing.T, nc *nats.Conn, agent string, handler func(*executorv1.DirectRequest) *executorv1.DirectReply) {
	t.Helper()
	r, err := queue.NewResponder(nc, queue.ResponderConfig{
		Agent: agent, Limit: 4, Logger: testkit.Logger(t),
		Handler: func(_ context.Context, r *executorv1.DirectRequest) *executorv1.DirectReply { return handler(r) },
	})
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, r.Stop(context.Background())) })
	require.NoError(t, nc.Flush())
}

func reply(text string) *executorv1.DirectReply {
	return &executorv1.DirectReply{Kind: &executorv1.DirectReply_Message{Message: &a2apb.Message{
		MessageId: task.NewID(), Role: a2apb.Role_ROLE_AGENT, Parts: textParts(text),
	}}}
}

// asTo is a send to one of the agents.
func asTo(agent, params string) string { return `{"tenant":"self.` + agent + `",` + params[1:] }

func TestWithoutAnExecutorDirectMessagesAreWorthARetry(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t, withNATS(testkit.NATS(t)))
		got := over.call(t.Context(), b, "SendMessage", asTo("direct", say("m1", "x")))
		require.Equal(t, a2aerr.ReasonUnavailable, got.failed.reason)
		require.Zero(t, b.store.writes)
	})
}

func TestAnAgentOfMessagesAnswersDirectly(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	b := newBench(t, withNATS(nc))
	var mu sync.Mutex
	asked := map[string]int{}
	answer(t, nc, "direct", func(r *executorv1.DirectRequest) *executorv1.DirectReply {
		mu.Lock()
		defer mu.Unlock()
		asked[r.GetMessage().GetMessageId()]++
		switch text := r.GetMessage().GetParts()[0].GetText(); text {
		case "busy":
			return &executorv1.DirectReply{Kind: &executorv1.DirectReply_Failure{Failure: &executorv1.DirectFailure{Kind: executorv1.DirectFailure_KIND_BUSY}}}
		case "no":
			return &executorv1.DirectReply{Kind: &executorv1.DirectReply_Failure{Failure: &executorv1.DirectFailure{Kind: executorv1.DirectFailure_KIND_REJECTED, Message: "not that"}}}
		case "broken":
			return &executorv1.DirectReply{Kind: &executorv1.DirectReply_Failure{Failure: &executorv1.DirectFailure{Kind: executorv1.DirectFailure_KIND_AGENT, Message: "it failed"}}}
		case "task":
			return &executorv1.DirectReply{Kind: &executorv1.DirectReply_TaskNeeded{TaskNeeded: &executorv1.TaskNeeded{Skill: "echo", Reason: "side_effect"}}}
		case "nothing":
			return &executorv1.DirectReply{}
		default:
			return reply(text)
		}
	})
	onAllBindings(t, func(t *testing.T, over binding) {
		id := task.NewID()
		var got, again a2apb.SendMessageResponse
		over.call(t.Context(), b, "SendMessage", asTo("direct", atOnce(say(id, "hi")))).message(t, &got)
		require.Equal(t, "hi", got.GetMessage().GetParts()[0].GetText())
		require.NotEmpty(t, got.GetMessage().GetContextId())
		over.call(t.Context(), b, "SendMessage", asTo("direct", say(id, "hi"))).message(t, &again)
		require.Equal(t, got.String(), again.String(), "a retry gets the same Message")
		mu.Lock()
		require.Equal(t, 1, asked[id])
		mu.Unlock()

		stream, refused := over.stream(t.Context(), b, "SendStreamingMessage", asTo("direct", say(id, "hi")))
		require.Nil(t, refused)
		require.Equal(t, []string{"message hi"}, stream.all(t))

		for text, reason := range map[string]string{
			"busy": a2aerr.ReasonUnavailable, "no": a2aerr.ReasonUnsupportedOperation, "broken": a2aerr.ReasonInvalidAgentResponse,
			"task": a2aerr.ReasonInvalidAgentResponse, "nothing": a2aerr.ReasonInvalidAgentResponse,
		} {
			require.Equal(t, reason, over.call(t.Context(), b, "SendMessage", asTo("direct", say(task.NewID(), text))).failed.reason, text)
		}
		require.Empty(t, b.store.tasks)
	})
}

func TestAHybridAgentAnswersOrMakesATask(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	b := newBench(t, withNATS(nc))
	scripted(b.store)
	answer(t, nc, "either", func(r *executorv1.DirectRequest) *executorv1.DirectReply {
		if strings.HasPrefix(r.GetMessage().GetParts()[0].GetText(), "msg") {
			return reply("direct")
		}
		return &executorv1.DirectReply{Kind: &executorv1.DirectReply_TaskNeeded{TaskNeeded: &executorv1.TaskNeeded{Skill: "echo", Reason: "may_outlive_request"}}}
	})
	onAllBindings(t, func(t *testing.T, over binding) {
		id := task.NewID()
		made := over.call(t.Context(), b, "SendMessage", asTo("either", say(id, "hi"))).task(t)
		require.Equal(t, task.Completed, made.GetStatus().GetState())
		require.Equal(t, made.String(), over.call(t.Context(), b, "SendMessage", asTo("either", say(id, "hi"))).task(t).String())
		var got a2apb.SendMessageResponse
		over.call(t.Context(), b, "SendMessage", asTo("either", say(task.NewID(), "msg"))).message(t, &got)
		require.Equal(t, "direct", got.GetMessage().GetParts()[0].GetText())
	})
}
