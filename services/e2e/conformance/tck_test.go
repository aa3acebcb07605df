package conformance_test

import (
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/errandhq/errand/services/e2e/internal/binding"
)

// What the official kit expects of the agent that it tests, by the prefix of the
// message id. CORE-SEND-001, DM-ART-001, DM-PART-001.
func TestTheKitsAgentMakesEachArtifact(t *testing.T) {
	t.Parallel()
	data, err := structpb.NewStruct(map[string]any{"key": "value", "count": 42.0})
	require.NoError(t, err)
	for prefix, want := range map[string]*a2apb.Part{
		"tck-artifact-text":     textPart("Generated text content"),
		"tck-artifact-file":     {Content: &a2apb.Part_Raw{}, Filename: "output.txt", MediaType: "text/plain"},
		"tck-artifact-file-url": {Content: &a2apb.Part_Url{Url: "https://example.com/output.txt"}},
		"tck-artifact-data":     {Content: &a2apb.Part_Data{Data: structpb.NewStructValue(data)}},
	} {
		t.Run(prefix, func(t *testing.T) {
			t.Parallel()
			each(t, tckAgent, func(t *testing.T, c *caller) {
				got := c.send(say("x", as(prefix+"-"+uuid.NewString())))
				require.Equal(t, completed, state(got))
				require.Len(t, got.GetArtifacts(), 1)
				part := got.GetArtifacts()[0].GetParts()[0]
				require.IsType(t, want.GetContent(), part.GetContent())
				switch content := want.GetContent().(type) {
				case *a2apb.Part_Raw:
					require.NotEmpty(t, part.GetRaw())
					require.Equal(t, want.GetFilename(), part.GetFilename())
					require.Equal(t, want.GetMediaType(), part.GetMediaType())
				case *a2apb.Part_Data:
					c.requireEqual(content.Data, part.GetData())
				default:
					require.Equal(t, want.GetContent(), part.GetContent())
				}
			})
		})
	}
}

// The kit's agent settles as it is told, follow-ups too.
func TestTheKitsAgentSettlesAsTold(t *testing.T) {
	t.Parallel()
	each(t, tckAgent, func(t *testing.T, c *caller) {
		for prefix, want := range map[string]a2apb.TaskState{
			"tck-complete-task": completed, "tck-input-required": inputRequired, "tck-reject-task": rejected, "": completed,
			"tck-stream-002": completed,
		} {
			require.Equal(t, want, state(c.send(say("x", as(prefix+"-"+uuid.NewString())))), prefix)
		}
		require.Equal(t, "Hello from TCK", statusText(c.send(say("x", as("tck-complete-task-"+uuid.NewString())))))
		direct := c.reply(say("x", as("tck-message-response-"+uuid.NewString())))
		require.Equal(t, "Direct message response", textOf(direct.GetParts()))
		asked := c.send(say("x", as("tck-input-required-"+uuid.NewString())))
		require.Equal(t, inputRequired, state(c.send(say("x", toTask(asked.GetId()), as("tck-input-required-"+uuid.NewString())))))
		require.Equal(t, completed, state(c.send(say("x", toTask(asked.GetId()), as("tck-complete-task-"+uuid.NewString())))))
	})
}

// CORE-STREAM-003, STREAM-ORDER-001: WORKING, the artifact, COMPLETED.
func TestTheKitsAgentStreams(t *testing.T) {
	t.Parallel()
	each(t, tckAgent, func(t *testing.T, c *caller) {
		for prefix, want := range map[string][]string{
			"tck-stream-001": {"Stream hello from TCK"}, "tck-stream-003": {"Stream task lifecycle"}, "tck-stream-ordering-001": {"Ordered output"},
			"tck-stream-artifact-text": {"Streamed text content"}, "tck-stream-artifact-chunked": {"chunk-1 ", "chunk-2"},
		} {
			events := c.sendStream(say("x", as(prefix+"-"+uuid.NewString()))).rest()
			told := c.replay(events)
			require.Equal(t, completed, state(told), prefix)
			require.Len(t, told.GetArtifacts(), 1, prefix)
			var got []string
			working, artifactAt := -1, -1
			for i, e := range events {
				if inState(a2apb.TaskState_TASK_STATE_WORKING)(e) && working < 0 {
					working = i
				}
				if chunk := e.GetArtifactUpdate(); chunk != nil {
					artifactAt = i
					require.Equal(t, len(got) > 0, chunk.GetAppend())
					got = append(got, textOf(chunk.GetArtifact().GetParts()))
					require.Equal(t, len(got) == len(want), chunk.GetLastChunk(), prefix)
				}
			}
			require.Equal(t, want, got)
			require.GreaterOrEqual(t, working, 0)
			require.Greater(t, artifactAt, working)
		}
	})
}

// STREAM-SUB-001, STREAM-SUB-002: the kit subscribes to a task that works for
// four seconds.
func TestTheKitsAgentLeavesTimeToSubscribe(t *testing.T) {
	t.Parallel()
	each(t, tckAgent, func(t *testing.T, c *caller) {
		sent := c.send(say("x", as("test-resubscribe-message-id-"+uuid.NewString()), immediately))
		events := c.subscribe(sent.GetId()).rest()
		require.Equal(t, completed, state(c.replay(events)))
		c.refusedStream(unsupportedOperation, binding.SubscribeToTask, &a2apb.SubscribeToTaskRequest{Id: sent.GetId()})
	})
}
