package conformance_test

import (
	"context"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/structpb"

	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/services/e2e/internal/binding"
)

// CORE-SEND-001, CORE-EXECUTION-MODE-001, CORE-MULTI-001, CORE-MULTI-001a, CORE-MULTI-003,
// DM-TASK-001, DM-STATUS-001, DM-ART-001, A2A §3.1.1.
func TestABlockingSendAnswersWithTheFinishedTask(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		got := c.send(say("hello there"))
		require.NoError(t, uuid.Validate(got.GetId()))
		require.NotEmpty(t, got.GetContextId())
		require.Equal(t, completed, state(got))
		require.NotNil(t, got.GetStatus().GetTimestamp())
		require.Len(t, got.GetArtifacts(), 1)
		require.NotEmpty(t, got.GetArtifacts()[0].GetArtifactId())
		require.Equal(t, "hello there", textOf(got.GetArtifacts()[0].GetParts()))
		c.requireEqual(c.get(got.GetId()), got)

		other := c.send(say("hello there"))
		require.NotEqual(t, got.GetId(), other.GetId())
		require.NotEqual(t, got.GetContextId(), other.GetContextId())
	})
}

// CORE-SEND-001, DM-MSG-001, A2A §3.1.1.
func TestASendMayBeAnsweredByAMessage(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		for _, how := range []detail{func(*a2apb.SendMessageRequest) {}, immediately} {
			got := c.reply(say("msg", how))
			require.NotEmpty(t, got.GetMessageId())
			require.Equal(t, a2apb.Role_ROLE_AGENT, got.GetRole())
			require.NotEmpty(t, got.GetParts())
			require.NotEmpty(t, got.GetContextId())
			require.Empty(t, got.GetTaskId())
			require.Empty(t, c.list(&a2apb.ListTasksRequest{ContextId: got.GetContextId()}).GetTasks())
		}
		kept := "c-" + uuid.NewString()
		require.Equal(t, kept, c.reply(say("msg", inContext(kept))).GetContextId())
	})
}

// CORE-EXECUTION-MODE-002, A2A §3.2.2.
func TestReturnImmediatelyAnswersWhileTheAgentWorks(t *testing.T) {
	t.Parallel()
	each(t, probeAgent, func(t *testing.T, c *caller) {
		hold := newHold(t)
		got := c.send(say(hold.text, immediately))
		require.Contains(t, []a2apb.TaskState{submitted, working}, state(got))
		hold.awaitRun(t)
		require.Equal(t, working, state(c.get(got.GetId())))
		hold.release()
		c.await(got.GetId(), completed)
	})
}

// A2A §3.2.2: blocking must include all artifacts.
func TestBlockingAnswersEqualTheStoredTaskUnderConcurrency(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		c.repeat(t, 100, func(t *testing.T, c *caller, _ int) {
			t.Helper()
			got := c.send(say("chunks 5"))
			require.Equal(t, completed, state(got))
			require.Len(t, got.GetArtifacts(), 1)
			require.Equal(t, "a1", got.GetArtifacts()[0].GetArtifactId())
			require.Len(t, got.GetArtifacts()[0].GetParts(), 5)
			c.requireEqual(c.get(got.GetId()), got)
		})
	})
}

// CORE-SEND-002, STREAM-SUB-003, A2A §3.1.1, §3.1.2, §3.1.6.
func TestAFinishedTaskTakesNothingMore(t *testing.T) {
	t.Parallel()
	each(t, probeAgent, func(t *testing.T, c *caller) {
		for end := range terminal {
			before := c.finished(end)
			c.refused(unsupportedOperation, binding.SendMessage, say("more", toTask(before.GetId())))
			c.refused(unsupportedOperation, binding.SendMessage, say("more", toTask(before.GetId()), immediately))
			c.refusedStream(unsupportedOperation, binding.SendStreamingMessage, say("more", toTask(before.GetId())))
			c.refusedStream(unsupportedOperation, binding.SubscribeToTask, &a2apb.SubscribeToTaskRequest{Id: before.GetId()})
			c.requireEqual(before, c.get(before.GetId()))
		}
	})
}

// CORE-MULTI-004, A2A §3.4.2.
func TestAnUnknownTaskIDMakesNoTask(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		here := inContext("c-" + uuid.NewString())
		for _, id := range []string{"made-up-1", uuid.NewString(), "tck-nonexistent-1", "a b", "ünï"} {
			c.refused(taskNotFound, binding.SendMessage, say("echo", toTask(id), here))
			c.refusedStream(taskNotFound, binding.SendStreamingMessage, say("echo", toTask(id), here))
			c.refused(taskNotFound, binding.GetTask, &a2apb.GetTaskRequest{Id: id})
		}
		got := c.send(say("echo", toTask(""), here))
		require.NoError(t, uuid.Validate(got.GetId()))
		require.Equal(t, int32(1), c.list(&a2apb.ListTasksRequest{ContextId: got.GetContextId()}).GetTotalSize())
	})
}

// CORE-MULTI-002, CORE-MULTI-002a, A2A §3.4.1.
func TestAContextIDOfTheSenderIsKept(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		for _, id := range []string{uuid.NewString(), "a.b", "*", ">", "a b", "ünï " + uuid.NewString(), "x/y:z"} {
			first := c.send(say("chunks 1", inContext(id)))
			require.Equal(t, id, first.GetContextId())
			second := c.send(say("chunks 1", inContext(id)))
			require.NotEqual(t, first.GetId(), second.GetId())
			// A new task has nothing of the old one but the context.
			require.Len(t, second.GetArtifacts(), 1)
			require.Len(t, second.GetArtifacts()[0].GetParts(), 1)
			require.Len(t, second.GetHistory(), 1)

			var listed []string
			for _, task := range c.list(&a2apb.ListTasksRequest{ContextId: id}).GetTasks() {
				listed = append(listed, task.GetId())
			}
			require.Subset(t, listed, []string{first.GetId(), second.GetId()})
		}
	})
}

// CORE-MULTI-005, CORE-MULTI-006, A2A §3.4.3.
func TestAFollowUpBelongsToTheContextOfItsTask(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		before := c.send(say("ask", inContext("c-"+uuid.NewString())))
		require.Equal(t, inputRequired, state(before))
		for _, other := range []string{"c2", before.GetContextId() + " ", before.GetId()} {
			c.invalid("message.contextId", binding.SendMessage, say("answer", toTask(before.GetId()), inContext(other)))
		}
		c.requireEqual(before, c.get(before.GetId()))

		after := c.send(say("answer", toTask(before.GetId())))
		require.Equal(t, completed, state(after))
		require.Equal(t, before.GetContextId(), after.GetContextId())

		again := c.send(say("ask", inContext(before.GetContextId())))
		both := say("answer", toTask(again.GetId()), inContext(before.GetContextId()))
		require.Equal(t, completed, state(c.send(both)))
	})
}

// A2A §3.2.2, §7.6.
func TestABlockingSendReturnsWhenTheTaskWaitsForItsSender(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		asked := c.send(say("ask"))
		require.Equal(t, inputRequired, state(asked))
		require.NotEmpty(t, statusText(asked))
		require.Equal(t, asked.GetId(), asked.GetStatus().GetMessage().GetTaskId())
		require.Equal(t, asked.GetContextId(), asked.GetStatus().GetMessage().GetContextId())
		require.Equal(t, authRequired, state(c.send(say("auth"))))
		require.Equal(t, completed, state(c.send(say("yes", toTask(asked.GetId())))))
	})
}

// A2A §3.2.2: a follow-up waits for the state after it, not for the one before.
func TestABlockingFollowUpWaitsForTheNextQuestion(t *testing.T) {
	t.Parallel()
	each(t, probeAgent, func(t *testing.T, c *caller) {
		text := script(t, func(ctx context.Context, task *agent.Task) error {
			switch n := len(task.Messages()); n {
			case 1, 2:
				return task.AskInput(ctx, agent.Text([]string{"first?", "second?"}[n-1]))
			default:
				return task.Complete(ctx)
			}
		})
		first := c.send(say(text))
		require.Equal(t, "first?", statusText(first))
		second := c.send(say("one", toTask(first.GetId())))
		require.Equal(t, inputRequired, state(second))
		require.Equal(t, "second?", statusText(second))
		last := c.send(say("two", toTask(first.GetId())))
		require.Equal(t, completed, state(last))
		require.Equal(t, []string{text, "first?", "one", "second?", "two"}, texts(last.GetHistory()))
	})
}

// What came with a message reaches the handler as it was sent.
func TestTheHandlerGetsWhatCameWithTheMessage(t *testing.T) {
	t.Parallel()
	each(t, probeAgent, func(t *testing.T, c *caller) {
		got := make(chan *eventv1.UserMessage, 1)
		text := script(t, func(_ context.Context, task *agent.Task) error {
			got <- task.Message()
			return nil
		})
		metadata, err := structpb.NewStruct(map[string]any{"https://x.test/ext/a": map[string]any{"n": 1.0}})
		require.NoError(t, err)
		in := say(text, inContext("c-"+uuid.NewString()))
		in.Metadata = metadata
		in.Message.Metadata = metadata
		in.Message.Extensions = []string{"https://x.test/ext/a"}
		in.Message.ReferenceTaskIds = []string{"no such task"}
		in.Message.Parts = append(in.Message.Parts,
			&a2apb.Part{Content: &a2apb.Part_Raw{Raw: []byte{0, 255}}, Filename: "f.bin", MediaType: "application/octet-stream"},
			&a2apb.Part{Content: &a2apb.Part_Url{Url: "https://x.test/f"}, Metadata: metadata},
			&a2apb.Part{Content: &a2apb.Part_Data{Data: structpb.NewStructValue(metadata)}})
		in.Configuration.AcceptedOutputModes = []string{"text/plain", "image/png"}

		stored := c.send(in)
		told := <-got
		c.requireEqual(metadata, told.GetRequest().GetMetadata())
		require.Equal(t, in.GetConfiguration().GetAcceptedOutputModes(), told.GetRequest().GetAcceptedOutputModes())
		for _, m := range []*a2apb.Message{told.GetMessage(), stored.GetHistory()[0]} {
			require.Equal(t, stored.GetId(), m.GetTaskId())
			in.Message.TaskId = m.GetTaskId()
			c.requireEqual(in.GetMessage(), m)
		}
	})
}
