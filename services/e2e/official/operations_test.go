package official_test

import (
	"iter"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/stretchr/testify/require"
)

func say(text string) *a2a.SendMessageRequest {
	return &a2a.SendMessageRequest{Message: a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart(text))}
}

// send wants a task.
func (c client) send(t *testing.T, in *a2a.SendMessageRequest) *a2a.Task {
	t.Helper()
	result, err := c.SendMessage(within(t), in)
	require.NoError(t, err)
	task, ok := result.(*a2a.Task)
	require.True(t, ok, "want a task, got %T", result)
	return task
}

// immediately makes a send one that does not wait.
func immediately(in *a2a.SendMessageRequest) *a2a.SendMessageRequest {
	in.Config = &a2a.SendMessageConfig{ReturnImmediately: true}
	return in
}

// all reads a stream to its end.
func all(t *testing.T, events iter.Seq2[a2a.Event, error]) []a2a.Event {
	t.Helper()
	var got []a2a.Event
	for e, err := range events {
		require.NoError(t, err)
		got = append(got, e)
	}
	require.NotEmpty(t, got)
	return got
}

func endState(t *testing.T, events []a2a.Event) a2a.TaskState {
	t.Helper()
	last, ok := events[len(events)-1].(*a2a.TaskStatusUpdateEvent)
	require.True(t, ok, "the last event is %T", events[len(events)-1])
	return last.Status.State
}

func TestTheClientSendsAndReads(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", "/agents/second"} {
		each(t, base, func(t *testing.T, c client) {
			done := c.send(t, say("hello there"))
			require.Equal(t, a2a.TaskStateCompleted, done.Status.State)
			require.Equal(t, "hello there", done.Artifacts[0].Parts[0].Text())

			got, err := c.GetTask(within(t), &a2a.GetTaskRequest{ID: done.ID})
			require.NoError(t, err)
			require.Equal(t, done, got)
			none := 0
			got, err = c.GetTask(within(t), &a2a.GetTaskRequest{ID: done.ID, HistoryLength: &none})
			require.NoError(t, err)
			require.Empty(t, got.History)

			result, err := c.SendMessage(within(t), say("msg"))
			require.NoError(t, err)
			require.IsType(t, &a2a.Message{}, result)
		})
	}
}

func TestTheClientAnswersAQuestion(t *testing.T) {
	t.Parallel()
	each(t, "", func(t *testing.T, c client) {
		asked := c.send(t, say("ask"))
		require.Equal(t, a2a.TaskStateInputRequired, asked.Status.State)
		answer := &a2a.SendMessageRequest{Message: a2a.NewMessageForTask(a2a.MessageRoleUser, asked, a2a.NewTextPart("blue"))}
		require.Equal(t, a2a.TaskStateCompleted, c.send(t, answer).Status.State)
		require.Equal(t, asked.ID, c.send(t, answer).ID, "sent again")
	})
}

func TestTheClientStreams(t *testing.T) {
	t.Parallel()
	each(t, "", func(t *testing.T, c client) {
		events := all(t, c.SendStreamingMessage(within(t), say("chunks 3")))
		require.IsType(t, &a2a.Task{}, events[0])
		require.Equal(t, a2a.TaskStateCompleted, endState(t, events))
		chunks := 0
		for _, e := range events {
			if _, ok := e.(*a2a.TaskArtifactUpdateEvent); ok {
				chunks++
			}
		}
		require.Equal(t, 3, chunks)

		events = all(t, c.SendStreamingMessage(within(t), say("msg")))
		require.Len(t, events, 1)
		require.IsType(t, &a2a.Message{}, events[0])
	})
}

func TestTheClientSubscribesAndCancels(t *testing.T) {
	t.Parallel()
	each(t, "", func(t *testing.T, c client) {
		sent := c.send(t, immediately(say("sleep 30")))
		next, stop := iter.Pull2(c.SubscribeToTask(within(t), &a2a.SubscribeToTaskRequest{ID: sent.ID}))
		defer stop()
		first, err, ok := next()
		require.True(t, ok)
		require.NoError(t, err)
		require.IsType(t, &a2a.Task{}, first)

		canceled, err := c.CancelTask(within(t), &a2a.CancelTaskRequest{ID: sent.ID, Metadata: map[string]any{"why": "test"}})
		require.NoError(t, err)
		require.Equal(t, a2a.TaskStateCanceled, canceled.Status.State)
		events := []a2a.Event{first}
		for e, err, ok := next(); ok; e, err, ok = next() {
			require.NoError(t, err)
			events = append(events, e)
		}
		require.Equal(t, a2a.TaskStateCanceled, endState(t, events))
	})
}

func TestTheClientLists(t *testing.T) {
	t.Parallel()
	each(t, "", func(t *testing.T, c client) {
		first := c.send(t, say("one"))
		for range 2 {
			in := say("more")
			in.Message.ContextID = first.ContextID
			c.send(t, in)
		}
		all, err := c.ListTasks(within(t), &a2a.ListTasksRequest{ContextID: first.ContextID})
		require.NoError(t, err)
		require.Equal(t, 3, all.TotalSize)
		require.Equal(t, 50, all.PageSize)

		in := &a2a.ListTasksRequest{ContextID: first.ContextID, PageSize: 2, IncludeArtifacts: true, Status: a2a.TaskStateCompleted}
		page, err := c.ListTasks(within(t), in)
		require.NoError(t, err)
		require.Len(t, page.Tasks, 2)
		require.NotEmpty(t, page.Tasks[0].Artifacts)
		in.PageToken = page.NextPageToken
		page, err = c.ListTasks(within(t), in)
		require.NoError(t, err)
		require.Len(t, page.Tasks, 1)
		require.Empty(t, page.NextPageToken)
		require.Equal(t, first.ID, page.Tasks[0].ID)

		since := *all.Tasks[0].Status.Timestamp
		later, err := c.ListTasks(within(t), &a2a.ListTasksRequest{ContextID: first.ContextID, StatusTimestampAfter: &since})
		require.NoError(t, err)
		require.Contains(t, []int{1, 2, 3}, later.TotalSize)
	})
}

func TestTheClientKnowsEachRefusal(t *testing.T) {
	t.Parallel()
	each(t, "", func(t *testing.T, c client) {
		ctx := within(t)
		done := c.send(t, say("echo"))
		_, err := c.GetTask(ctx, &a2a.GetTaskRequest{ID: "nope"})
		require.ErrorIs(t, err, a2a.ErrTaskNotFound)
		_, err = c.CancelTask(ctx, &a2a.CancelTaskRequest{ID: done.ID})
		require.ErrorIs(t, err, a2a.ErrTaskNotCancelable)
		more := &a2a.SendMessageRequest{Message: a2a.NewMessageForTask(a2a.MessageRoleUser, done, a2a.NewTextPart("more"))}
		_, err = c.SendMessage(ctx, more)
		require.ErrorIs(t, err, a2a.ErrUnsupportedOperation)
		_, err = c.SendMessage(ctx, &a2a.SendMessageRequest{Message: a2a.NewMessage(a2a.MessageRoleUser)})
		require.ErrorIs(t, err, a2a.ErrInvalidParams)
		for _, err := range c.SendStreamingMessage(ctx, more) {
			require.ErrorIs(t, err, a2a.ErrUnsupportedOperation)
		}
		_, err = c.direct.GetExtendedAgentCard(ctx, &a2a.GetExtendedAgentCardRequest{})
		require.ErrorIs(t, err, a2a.ErrUnsupportedOperation)
	})
}

// The card declares no push, and the four operations say so.
func TestTheClientLearnsThatThereIsNoPush(t *testing.T) {
	t.Parallel()
	each(t, "", func(t *testing.T, c client) {
		ctx := within(t)
		require.False(t, c.card.Capabilities.PushNotifications)
		done := c.send(t, say("echo"))
		_, err := c.CreateTaskPushConfig(ctx, &a2a.PushConfig{TaskID: done.ID, URL: "https://hook.test/h"})
		require.ErrorIs(t, err, a2a.ErrPushNotificationNotSupported)
		_, err = c.GetTaskPushConfig(ctx, &a2a.GetTaskPushConfigRequest{TaskID: done.ID, ID: "c"})
		require.ErrorIs(t, err, a2a.ErrPushNotificationNotSupported)
		_, err = c.ListTaskPushConfigs(ctx, &a2a.ListTaskPushConfigRequest{TaskID: done.ID})
		require.ErrorIs(t, err, a2a.ErrPushNotificationNotSupported)
		err = c.DeleteTaskPushConfig(ctx, &a2a.DeleteTaskPushConfigRequest{TaskID: done.ID, ID: "c"})
		require.ErrorIs(t, err, a2a.ErrPushNotificationNotSupported)
	})
}
