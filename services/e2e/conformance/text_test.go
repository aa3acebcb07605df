package conformance_test

import (
	"context"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/services/e2e/internal/binding"
)

// Any Unicode text comes back as it was sent, U+0000 too.
func TestTextComesBackAsItWas(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		for _, text := range []string{"a\u0000b", "\u0001", "🜁🙂‍↔️", "\ufeff\u2028\u2029", "'; DROP TABLE tasks; --", "\\u0000", "</script>&amp;"} {
			metadata, err := structpb.NewStruct(map[string]any{text: text, "nested": map[string]any{text: []any{text}}})
			require.NoError(t, err)
			in := say("ask")
			in.Message.Parts = append(in.Message.Parts, textPart(text),
				&a2apb.Part{Content: &a2apb.Part_Data{Data: structpb.NewStructValue(metadata)}})
			in.Message.Metadata = metadata
			sent := c.send(in)
			in.Message.TaskId, in.Message.ContextId = sent.GetId(), sent.GetContextId()
			for _, other := range callers(t, c.cluster, c.agent) {
				other.requireEqual(in.GetMessage(), other.get(sent.GetId()).GetHistory()[0])
			}
			echoed := c.send(say(text))
			require.Equal(t, text, textOf(echoed.GetArtifacts()[0].GetParts()))
		}
	})
}

// The same in ids, which may be refused, but not with a failure inside.
func TestOddIDsRoundTripOrAreRefused(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		for _, id := range []string{"a\u0000b" + uuid.NewString(), "\u0001" + uuid.NewString(), "🙂" + uuid.NewString(), "a\nb" + uuid.NewString(), "a\r\nPUB x 0"} {
			answer := c.ask(binding.SendMessage, say("echo", inContext(id), as(id)))
			if answer.Err != nil {
				invalidParams.check(t, c.Binding, answer)
				continue
			}
			got := answer.Result.(*a2apb.SendMessageResponse).GetTask()
			require.Equal(t, id, got.GetContextId())
			require.Equal(t, id, got.GetHistory()[0].GetMessageId())
			require.Len(t, c.list(&a2apb.ListTasksRequest{ContextId: id}).GetTasks(), 1)
		}
	})
}

// JSON can say half a surrogate pair, which is no text.
func TestLoneSurrogatesAreRefusedOrReplaced(t *testing.T) {
	t.Parallel()
	eachJSON(t, defaultAgent, func(t *testing.T, _ *caller, b binding.JSON) {
		for _, members := range []string{
			`"parts":[{"text":"a\ud83db"}]`, `"parts":[{"text":"\udc00"}]`, `"parts":[{"text":"x"}],"metadata":{"\ud83d":1}`,
			`"parts":[{"data":["\ud83d"]}]`, "\"parts\":[{\"text\":\"\xff\"}]",
		} {
			answer, err := b.CallJSON(within(t), binding.SendMessage, message(members))
			require.NoError(t, err)
			if answer.Err != nil {
				invalidParams.check(t, b, answer)
			}
		}
	})
}

// What a model puts out is not always text. The task ends all the same, and can
// be read on all bindings.
func TestBrokenTextOfAnAgentDoesNotStopTheTask(t *testing.T) {
	t.Parallel()
	each(t, probeAgent, func(t *testing.T, c *caller) {
		half := "smile " + "🙂"[:2]
		odd, err := structpb.NewStruct(map[string]any{"\u0000": "\u0000"})
		require.NoError(t, err)
		text := script(t, func(ctx context.Context, task *agent.Task) error {
			made := artifact("odd", "a\u0000b", half, "\xff\xfe")
			made.Metadata = odd
			if err := task.Emit(ctx, made); err != nil {
				return err
			}
			if err := task.Progress(ctx, agent.Text(half)); err != nil {
				return err
			}
			return task.Complete(ctx, agent.Text(half+" done"))
		})
		told := c.replay(c.sendStream(say(text)).rest())
		require.Equal(t, completed, state(told))
		require.Equal(t, "a\u0000b", told.GetArtifacts()[0].GetParts()[0].GetText())
		require.Contains(t, statusText(told), "smile")
		for _, other := range callers(t, c.cluster, c.agent) {
			other.requireSame(told, other.get(told.GetId()))
		}
	})
}
