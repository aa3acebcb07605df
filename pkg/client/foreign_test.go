package client_test

import (
	"context"
	"strings"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/client"
	"github.com/errandhq/errand/pkg/client/clienttest"
)

// onEachBinding runs a test against an agent of the official SDK.
func onEachBinding(t *testing.T, test func(t *testing.T, c *client.Client, agent *clienttest.Agent)) {
	t.Helper()
	for _, binding := range []string{client.JSONRPC, client.HTTPJSON, client.GRPC} {
		t.Run(binding, func(t *testing.T) {
			t.Parallel()
			agent := clienttest.Start(t)
			c, err := client.New(t.Context(), agent.URL, client.Options{
				Bindings: []string{binding},
				Retry:    client.Retry{First: time.Millisecond, Slowest: 10 * time.Millisecond},
			})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, c.Close()) })
			require.Equal(t, binding, c.Interface().GetProtocolBinding())
			test(t, c, agent)
		})
	}
}

func send(text string) *a2apb.SendMessageRequest {
	return &a2apb.SendMessageRequest{Message: client.NewMessage(client.Text(text))}
}

// artifact returns the text of a task's only artifact.
func artifact(t *testing.T, task *a2apb.Task) string {
	t.Helper()
	require.Len(t, task.GetArtifacts(), 1)
	var text strings.Builder
	for _, part := range task.GetArtifacts()[0].GetParts() {
		text.WriteString(part.GetText())
	}
	return text.String()
}

func state(task *a2apb.Task) string {
	return strings.TrimPrefix(task.GetStatus().GetState().String(), "TASK_STATE_")
}

func TestSendWaitsForTheResult(t *testing.T) {
	t.Parallel()
	onEachBinding(t, func(t *testing.T, c *client.Client, _ *clienttest.Agent) {
		response, err := c.Send(t.Context(), send("to be or not"))
		require.NoError(t, err)
		require.Equal(t, "COMPLETED", state(response.GetTask()))
		require.Equal(t, "to be or not", artifact(t, response.GetTask()))
	})
}

func TestSendReturnsADirectMessage(t *testing.T) {
	t.Parallel()
	onEachBinding(t, func(t *testing.T, c *client.Client, _ *clienttest.Agent) {
		response, err := c.Send(t.Context(), send("msg"))
		require.NoError(t, err)
		require.Equal(t, "direct", response.GetMessage().GetParts()[0].GetText())
	})
}

func TestStreamPutsTheTaskTogether(t *testing.T) {
	t.Parallel()
	onEachBinding(t, func(t *testing.T, c *client.Client, _ *clienttest.Agent) {
		var last *client.Update
		updates := 0
		for update, err := range c.Stream(t.Context(), send("to be or not")) {
			require.NoError(t, err)
			last = update
			updates++
		}
		require.Equal(t, 1+1+4+1, updates)
		require.Equal(t, "COMPLETED", state(last.Task))
		require.Equal(t, "to be or not", artifact(t, last.Task))
		got, err := c.Get(t.Context(), &a2apb.GetTaskRequest{Id: last.Task.GetId()})
		require.NoError(t, err)
		require.Equal(t, artifact(t, got), artifact(t, last.Task))
	})
}

func TestStreamOfADirectMessageHasOneUpdate(t *testing.T) {
	t.Parallel()
	onEachBinding(t, func(t *testing.T, c *client.Client, _ *clienttest.Agent) {
		updates := 0
		for update, err := range c.Stream(t.Context(), send("msg")) {
			require.NoError(t, err)
			require.Nil(t, update.Task)
			require.Equal(t, "direct", update.Event.GetMessage().GetParts()[0].GetText())
			updates++
		}
		require.Equal(t, 1, updates)
	})
}

func TestStreamEndsWhenTheAgentAsksAndGoesOnWithTheAnswer(t *testing.T) {
	t.Parallel()
	onEachBinding(t, func(t *testing.T, c *client.Client, _ *clienttest.Agent) {
		var task *a2apb.Task
		for update, err := range c.Stream(t.Context(), send("ask")) {
			require.NoError(t, err)
			task = update.Task
		}
		require.Equal(t, "INPUT_REQUIRED", state(task))
		answer := send("blue")
		answer.Message.TaskId = task.GetId()
		for update, err := range c.Stream(t.Context(), answer) {
			require.NoError(t, err)
			task = update.Task
		}
		require.Equal(t, "COMPLETED", state(task))
		require.Equal(t, "blue", artifact(t, task))
	})
}

func TestSubscribeFollowsARunningTask(t *testing.T) {
	t.Parallel()
	onEachBinding(t, func(t *testing.T, c *client.Client, agent *clienttest.Agent) {
		task := startWaiting(t, c)
		first := true
		for update, err := range c.Subscribe(t.Context(), &a2apb.SubscribeToTaskRequest{Id: task.GetId()}) {
			require.NoError(t, err)
			if first {
				require.NotNil(t, update.Event.GetTask())
				first = false
				agent.Release()
			}
			task = update.Task
		}
		require.Equal(t, "COMPLETED", state(task))
		require.Equal(t, "wait", artifact(t, task))
	})
}

func startWaiting(t *testing.T, c *client.Client) *a2apb.Task {
	t.Helper()
	request := send("wait")
	request.Configuration = &a2apb.SendMessageConfiguration{ReturnImmediately: true}
	response, err := c.Send(t.Context(), request)
	require.NoError(t, err)
	require.Contains(t, []string{"SUBMITTED", "WORKING"}, state(response.GetTask()))
	return response.GetTask()
}

func TestSubscribeToAFinishedTaskGivesTheTask(t *testing.T) {
	t.Parallel()
	onEachBinding(t, func(t *testing.T, c *client.Client, _ *clienttest.Agent) {
		response, err := c.Send(t.Context(), send("done"))
		require.NoError(t, err)
		updates := 0
		for update, err := range c.Subscribe(t.Context(), &a2apb.SubscribeToTaskRequest{Id: response.GetTask().GetId()}) {
			require.NoError(t, err)
			require.Equal(t, "COMPLETED", state(update.Task))
			updates++
		}
		require.Equal(t, 1, updates)
	})
}

func TestWaitReturnsTheSettledTask(t *testing.T) {
	t.Parallel()
	onEachBinding(t, func(t *testing.T, c *client.Client, agent *clienttest.Agent) {
		task := startWaiting(t, c)
		go agent.Release()
		task, err := c.Wait(t.Context(), &a2apb.GetTaskRequest{Id: task.GetId()})
		require.NoError(t, err)
		require.Equal(t, "COMPLETED", state(task))

		asked, err := c.Send(t.Context(), send("ask"))
		require.NoError(t, err)
		task, err = c.Wait(t.Context(), &a2apb.GetTaskRequest{Id: asked.GetTask().GetId()})
		require.NoError(t, err)
		require.Equal(t, "INPUT_REQUIRED", state(task))
	})
}

func TestCancelEndsARunningTaskAndIsIdempotent(t *testing.T) {
	t.Parallel()
	onEachBinding(t, func(t *testing.T, c *client.Client, _ *clienttest.Agent) {
		task := startWaiting(t, c)
		for range 2 {
			canceled, err := c.Cancel(t.Context(), &a2apb.CancelTaskRequest{Id: task.GetId()})
			require.NoError(t, err)
			require.Equal(t, "CANCELED", state(canceled))
		}
	})
}

func TestErrorsAreTypedByReason(t *testing.T) {
	t.Parallel()
	onEachBinding(t, func(t *testing.T, c *client.Client, _ *clienttest.Agent) {
		_, err := c.Get(t.Context(), &a2apb.GetTaskRequest{Id: "nope"})
		require.ErrorIs(t, err, client.ErrTaskNotFound)
		for _, err := range c.Subscribe(t.Context(), &a2apb.SubscribeToTaskRequest{Id: "nope"}) {
			require.ErrorIs(t, err, client.ErrTaskNotFound)
		}
		response, err := c.Send(t.Context(), send("done"))
		require.NoError(t, err)
		_, err = c.Cancel(t.Context(), &a2apb.CancelTaskRequest{Id: response.GetTask().GetId()})
		require.ErrorIs(t, err, client.ErrTaskNotCancelable)
		_, err = c.ExtendedCard(t.Context())
		var typed *client.Error
		require.ErrorAs(t, err, &typed)
		require.NotEmpty(t, typed.Reason)
	})
}

func TestListReadsAllPages(t *testing.T) {
	t.Parallel()
	onEachBinding(t, func(t *testing.T, c *client.Client, _ *clienttest.Agent) {
		want := map[string]bool{}
		for range 5 {
			response, err := c.Send(t.Context(), send("done"))
			require.NoError(t, err)
			want[response.GetTask().GetId()] = true
		}
		got := map[string]bool{}
		size := int32(2)
		for task, err := range c.List(t.Context(), &a2apb.ListTasksRequest{
			PageSize: &size, Status: a2apb.TaskState_TASK_STATE_COMPLETED,
		}) {
			require.NoError(t, err)
			require.False(t, got[task.GetId()], "seen twice")
			got[task.GetId()] = true
		}
		require.Equal(t, want, got)
	})
}

func TestBreakingOffAStreamLeavesTheTaskRunning(t *testing.T) {
	t.Parallel()
	onEachBinding(t, func(t *testing.T, c *client.Client, agent *clienttest.Agent) {
		var task *a2apb.Task
		for update, err := range c.Stream(t.Context(), send("wait")) {
			require.NoError(t, err)
			task = update.Task
			break
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		go agent.Release()
		got, err := c.Wait(ctx, &a2apb.GetTaskRequest{Id: task.GetId()})
		require.NoError(t, err)
		require.Equal(t, "COMPLETED", state(got))
	})
}
