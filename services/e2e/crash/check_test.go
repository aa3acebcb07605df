package crash_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/services/e2e/internal/binding"
)

// check reads back everything that was promised.
func check(t *testing.T, client *binding.Client, messages []message) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	rest := client.Bindings("")[1]
	ids := map[string]bool{}
	work := make(chan message)
	var readers sync.WaitGroup
	for range senders {
		readers.Go(func() {
			for m := range work {
				checkMessage(ctx, t, rest, m)
			}
		})
	}
	for _, m := range messages {
		assert.False(t, ids[m.taskID], "two messages have task %s", m.taskID)
		ids[m.taskID] = true
		work <- m
	}
	close(work)
	readers.Wait()

	// There are no others: no message made two tasks.
	require.Equal(t, len(messages), count(ctx, t, rest))
}

// count reads the list of all tasks to its end.
func count(ctx context.Context, t *testing.T, b binding.Binding) int {
	t.Helper()
	in, n := &a2apb.ListTasksRequest{PageSize: new(int32(100))}, 0
	for {
		answer, err := b.Call(ctx, binding.ListTasks, in)
		require.NoError(t, err)
		require.Nil(t, answer.Err)
		page := answer.Result.(*a2apb.ListTasksResponse)
		n += len(page.GetTasks())
		if in.PageToken = page.GetNextPageToken(); in.GetPageToken() == "" {
			return n
		}
	}
}

// checkMessage: all answers named one task, which completed, once, with each
// part of its artifact once, and versions without a hole.
func checkMessage(ctx context.Context, t *testing.T, b binding.Binding, m message) {
	t.Helper()
	for _, told := range m.told {
		assert.Equal(t, m.taskID, told)
	}
	task := awaitEnd(ctx, t, b, m.taskID)
	assert.Equal(t, a2apb.TaskState_TASK_STATE_COMPLETED, task.GetStatus().GetState(), "%v", task.GetStatus())
	assert.Len(t, task.GetHistory(), 1)
	if m.parts > 0 && assert.Len(t, task.GetArtifacts(), 1) {
		assert.Len(t, task.GetArtifacts()[0].GetParts(), m.parts)
	}
	checkEvents(ctx, t, b, m.taskID)
}

func awaitEnd(ctx context.Context, t *testing.T, b binding.Binding, id string) *a2apb.Task {
	t.Helper()
	for {
		answer, err := b.Call(ctx, binding.GetTask, &a2apb.GetTaskRequest{Id: id})
		if !assert.NoError(t, err) || !assert.Nil(t, answer.Err, "task %s is lost", id) {
			return nil
		}
		task := answer.Result.(*a2apb.Task)
		switch task.GetStatus().GetState() {
		case a2apb.TaskState_TASK_STATE_SUBMITTED, a2apb.TaskState_TASK_STATE_WORKING:
		default:
			return task
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			assert.Fail(t, "a task does not end", "%v", task)
			return task
		}
	}
}

// checkEvents reads the event log by resuming a stream after its first event.
func checkEvents(ctx context.Context, t *testing.T, b binding.Binding, id string) {
	t.Helper()
	s, answer, err := b.Open(ctx, binding.SubscribeToTask, &a2apb.SubscribeToTaskRequest{Id: id}, binding.With("Last-Event-ID", "1"))
	if !assert.NoError(t, err) || !assert.NotNil(t, s, "%v", answer) {
		return
	}
	defer s.Close()
	want, ended := 2, false
	for e, err := s.Next(); err == nil; e, err = s.Next() {
		assert.False(t, ended, "task %s has an event after its end: %v", id, e)
		assert.Equal(t, strconv.Itoa(want), e.ID, "task %s", id)
		ended = e.GetStatusUpdate().GetStatus().GetState() == a2apb.TaskState_TASK_STATE_COMPLETED
		want++
	}
	assert.True(t, ended, "the log of task %s has no end", id)
}
