package tck_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/pkg/agent/agenttest"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/services/agents/tck"
	"github.com/stretchr/testify/require"
)

func message(id string) *a2apb.Message {
	m := agenttest.Text("x")
	m.MessageId = id
	return m
}

func run(t *testing.T, id string) (*agenttest.Cluster, *a2apb.Task) {
	t.Helper()
	c := agenttest.New(tck.New(), slog.New(slog.DiscardHandler))
	got, err := c.Send(message(id))
	require.NoError(t, err)
	return c, got
}

func TestTask_EndsAsTheMessageIDSays(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]task.State{
		"tck-complete-task-17": task.Completed, "tck-input-required-a": task.InputRequired,
		"tck-reject-task": task.Rejected, "tck-stream-002-b": task.Completed, "whatever": task.Completed,
	} {
		_, got := run(t, id)
		require.Equal(t, want, got.GetStatus().GetState(), id)
	}
	_, got := run(t, "tck-complete-task-17")
	require.Equal(t, "Hello from TCK", agent.TextOf(got.GetStatus().GetMessage()))
}

func TestTask_EmitsAsTheLongestPrefixSays(t *testing.T) {
	t.Parallel()
	for id, text := range map[string]string{
		"tck-artifact-text-1":        "Generated text content",
		"tck-stream-001-1":           "Stream hello from TCK",
		"tck-stream-003-1":           "Stream task lifecycle",
		"tck-stream-ordering-001-1":  "Ordered output",
		"tck-stream-artifact-text-1": "Streamed text content",
	} {
		_, got := run(t, id)
		require.Equal(t, text, got.GetArtifacts()[0].GetParts()[0].GetText(), id)
	}
	_, got := run(t, "tck-artifact-file-url-1")
	require.Equal(t, "https://example.com/output.txt", got.GetArtifacts()[0].GetParts()[0].GetUrl())
	for _, id := range []string{"tck-artifact-file-1", "tck-stream-artifact-file-1"} {
		_, got := run(t, id)
		require.NotEmpty(t, got.GetArtifacts()[0].GetParts()[0].GetRaw())
		require.Equal(t, "output.txt", got.GetArtifacts()[0].GetParts()[0].GetFilename())
		require.Equal(t, "text/plain", got.GetArtifacts()[0].GetParts()[0].GetMediaType())
	}
	_, got = run(t, "tck-artifact-data-1")
	data := got.GetArtifacts()[0].GetParts()[0].GetData()
	require.Equal(t, map[string]any{"key": "value", "count": 42.0}, data.AsInterface())
}

func TestTask_ChunksAppend(t *testing.T) {
	t.Parallel()
	c, got := run(t, "tck-stream-artifact-chunked-1")
	require.Len(t, got.GetArtifacts(), 1)
	events := c.Events(got.GetId())
	require.False(t, events[0].GetArtifactUpdate().GetAppend())
	require.Equal(t, "chunk-1 ", events[0].GetArtifactUpdate().GetArtifact().GetParts()[0].GetText())
	require.True(t, events[1].GetArtifactUpdate().GetAppend())
	require.True(t, events[1].GetArtifactUpdate().GetLastChunk())
	require.Equal(t, "chunk-2", events[1].GetArtifactUpdate().GetArtifact().GetParts()[0].GetText())
}

func TestTask_FollowUpIsReadTheSameWay(t *testing.T) {
	t.Parallel()
	c, asked := run(t, "tck-input-required-1")
	reply := message("tck-complete-task-2")
	reply.TaskId = asked.GetId()
	got, err := c.Send(reply)
	require.NoError(t, err)
	require.Equal(t, task.Completed, got.GetStatus().GetState())
}

func TestTask_ResubscribeTakesFourSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		_, got := run(t, "test-resubscribe-message-id-1")
		require.Equal(t, 4*time.Second, time.Since(begun))
		require.Equal(t, task.Completed, got.GetStatus().GetState())
	})
}

func TestMessage_AnswersItsPrefixAlone(t *testing.T) {
	t.Parallel()
	c := agenttest.New(tck.New(), slog.New(slog.DiscardHandler))
	require.Equal(t, "Direct message response", agent.TextOf(c.Ask(message("tck-message-response-1")).GetMessage()))
}

func TestAgentsFile_IsValid(t *testing.T) {
	t.Parallel()
	file, err := config.Parse(tck.AgentsFile())
	require.NoError(t, err)
	require.False(t, file.Agent(tck.Name).Dedupe.On())
}
