package gateway_test

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
	a2agrpc "github.com/a2aproject/a2a-go/v2/a2agrpc/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/errandhq/errand/pkg/task"
)

// onOfficialClients runs a test with the official Go client, made from a card.
func onOfficialClients(t *testing.T, agent string, test func(t *testing.T, b *bench, c *a2aclient.Client), options ...option) {
	t.Helper()
	for _, transport := range []a2a.TransportProtocol{a2a.TransportProtocolJSONRPC, a2a.TransportProtocolHTTPJSON, a2a.TransportProtocolGRPC} {
		t.Run(string(transport), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, options...)
			card, err := agentcard.NewResolver(b.http).Resolve(t.Context(), b.base+"/agents/"+agent)
			require.NoError(t, err)
			c, err := a2aclient.NewFromCard(t.Context(), card,
				a2aclient.WithConfig(a2aclient.Config{PreferredTransports: []a2a.TransportProtocol{transport}}),
				a2aclient.WithJSONRPCTransport(b.http), a2aclient.WithRESTTransport(b.http),
				a2agrpc.WithGRPCTransport(grpc.WithTransportCredentials(insecure.NewCredentials())))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, c.Destroy()) })
			test(t, b, c)
		})
	}
}

func userMessage(text string) *a2a.SendMessageRequest {
	return &a2a.SendMessageRequest{Message: a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart(text))}
}

// names collects the kinds of a stream's events.
func names(t *testing.T, stream iter.Seq2[a2a.Event, error]) (kinds []string, id a2a.TaskID) {
	t.Helper()
	for e, err := range stream {
		require.NoError(t, err)
		kinds = append(kinds, fmt.Sprintf("%T", e))
		id = e.TaskInfo().TaskID
	}
	return kinds, id
}

func TestTheOfficialClientDoesEveryOperation(t *testing.T) {
	t.Parallel()
	onOfficialClients(t, "busy", func(t *testing.T, b *bench, c *a2aclient.Client) {
		scripted(b.store)
		sent, err := c.SendMessage(t.Context(), userMessage("hi"))
		require.NoError(t, err)
		done, ok := sent.(*a2a.Task)
		require.True(t, ok)
		require.Equal(t, a2a.TaskStateCompleted, done.Status.State)
		require.Equal(t, "busy", b.store.tasks[string(done.ID)].agent)

		got, err := c.GetTask(t.Context(), &a2a.GetTaskRequest{ID: done.ID})
		require.NoError(t, err)
		require.Len(t, got.Artifacts, 1)
		list, err := c.ListTasks(t.Context(), &a2a.ListTasksRequest{StatusTimestampAfter: got.Status.Timestamp})
		require.NoError(t, err)
		require.Equal(t, 1, list.TotalSize)
		require.Equal(t, 50, list.PageSize)

		kinds, _ := names(t, c.SendStreamingMessage(t.Context(), userMessage("hi")))
		require.Equal(t, []string{"*a2a.Task", "*a2a.TaskStatusUpdateEvent", "*a2a.TaskArtifactUpdateEvent", "*a2a.TaskArtifactUpdateEvent", "*a2a.TaskStatusUpdateEvent"}, kinds)

		asked, err := c.SendMessage(t.Context(), userMessage("ask"))
		require.NoError(t, err)
		id := asked.TaskInfo().TaskID
		for e, err := range c.SubscribeToTask(t.Context(), &a2a.SubscribeToTaskRequest{ID: id}) {
			require.NoError(t, err)
			if _, first := e.(*a2a.Task); first {
				b.store.emit(string(id), status(task.Working, ""), status(task.Completed, ""))
			}
		}
		waiting, err := c.SendMessage(t.Context(), &a2a.SendMessageRequest{
			Message: userMessage("wait").Message, Config: &a2a.SendMessageConfig{ReturnImmediately: true},
		})
		require.NoError(t, err)
		canceled, err := c.CancelTask(t.Context(), &a2a.CancelTaskRequest{ID: waiting.TaskInfo().TaskID})
		require.NoError(t, err)
		require.Equal(t, a2a.TaskStateCanceled, canceled.Status.State)
	})
}

// It knows nothing of event names: what they say must be no more than a hint.
func TestTheOfficialClientTakesATaskInThePlaceOfEvents(t *testing.T) {
	t.Parallel()
	onOfficialClients(t, "busy", func(t *testing.T, b *bench, c *a2aclient.Client) {
		tasks, last := 0, 0
		for e, err := range c.SendStreamingMessage(t.Context(), userMessage("wait")) {
			require.NoError(t, err)
			snapshot, ok := e.(*a2a.Task)
			if !ok {
				continue
			}
			if tasks++; tasks > 1 {
				last = len(snapshot.Artifacts[0].Parts)
				continue
			}
			b.store.emit(string(snapshot.ID), status(task.Working, ""))
			for i := range 500 {
				b.store.emit(string(snapshot.ID), artifact("a", strings.Repeat("x", 2000), i > 0))
			}
			b.store.emit(string(snapshot.ID), status(task.Completed, ""))
		}
		require.Greater(t, tasks, 1)
		require.Positive(t, last)
	}, withAgents(strings.Replace(defaultAgents, "limits: {", "limits: {subscriber_buffer: 1, ", 1)))
}

func TestTheOfficialClientTypesErrors(t *testing.T) {
	t.Parallel()
	onOfficialClients(t, "echo", func(t *testing.T, b *bench, c *a2aclient.Client) {
		scripted(b.store)
		_, err := c.GetTask(t.Context(), &a2a.GetTaskRequest{ID: "nope"})
		require.ErrorIs(t, err, a2a.ErrTaskNotFound)
		done, err := c.SendMessage(t.Context(), userMessage("hi"))
		require.NoError(t, err)
		id := done.TaskInfo().TaskID
		_, err = c.CancelTask(t.Context(), &a2a.CancelTaskRequest{ID: id})
		require.ErrorIs(t, err, a2a.ErrTaskNotCancelable)
		_, err = c.GetTaskPushConfig(t.Context(), &a2a.GetTaskPushConfigRequest{TaskID: id, ID: "c"})
		require.ErrorIs(t, err, a2a.ErrPushNotificationNotSupported)
		_, err = c.SendMessage(t.Context(), &a2a.SendMessageRequest{Message: &a2a.Message{ID: "m", Role: a2a.MessageRoleUser}})
		require.ErrorIs(t, err, a2a.ErrInvalidParams)

		late := userMessage("more")
		late.Message.TaskID = id
		for _, err := range c.SendStreamingMessage(t.Context(), late) {
			require.ErrorIs(t, err, a2a.ErrUnsupportedOperation)
		}
		var streamErr error
		for _, err := range c.SubscribeToTask(t.Context(), &a2a.SubscribeToTaskRequest{ID: "nope"}) {
			streamErr = errors.Join(streamErr, err)
		}
		if streamErr != nil { // over JSON-RPC the client doesn't read plain errors
			require.ErrorIs(t, streamErr, a2a.ErrTaskNotFound)
		}
	})
}
