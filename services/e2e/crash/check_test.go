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

	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"

	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/harness"
)

// checker reads back everything that was promised.
type checker struct {
	*testing.T
	client *binding.Client
	store  taskstorev1.TaskStoreServiceClient
}

func check(t *testing.T, f *fleet, promises []promise) {
	t.Helper()
	c := &checker{T: t, client: f.nodes[0].Client, store: harness.TaskStore(t, f.nodes[0].TaskStoreAddr)}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c.promises(ctx, promises)
	for _, agent := range []string{inNode, counted} {
		c.noOthers(ctx, agent, promises)
	}
	checkRuns(t, f.runs, promises)
}

func (c *checker) promises(ctx context.Context, promises []promise) {
	work := make(chan promise)
	var readers sync.WaitGroup
	for range senders {
		readers.Go(func() {
			for p := range work {
				c.promise(ctx, p)
			}
		})
	}
	for _, p := range promises {
		work <- p
	}
	close(work)
	readers.Wait()
}

// promise: all answers named one task, which completed, with each message and
// each part of its artifact once; and so its streams and its log tell it.
func (c *checker) promise(ctx context.Context, p promise) {
	for _, told := range p.told {
		assert.NotEmpty(c, told)
		assert.Equal(c, p.told[0], told, "answers to one message differ")
	}
	if p.taskID == "" {
		return
	}
	task := c.awaitEnd(ctx, p)
	assert.Equal(c, a2apb.TaskState_TASK_STATE_COMPLETED, task.GetStatus().GetState(), "%v", task.GetStatus())
	mine := 0
	for _, m := range task.GetHistory() {
		if m.GetRole() == a2apb.Role_ROLE_USER {
			mine++
		}
	}
	assert.Equal(c, p.messages, mine, "%v", task.GetHistory())
	if p.parts > 0 && assert.Len(c, task.GetArtifacts(), 1) {
		assert.Len(c, task.GetArtifacts()[0].GetParts(), p.parts)
	}
	c.stream(p, task)
	c.log(ctx, p, task)
}

// awaitEnd: there is work left when the load stops.
func (c *checker) awaitEnd(ctx context.Context, p promise) *a2apb.Task {
	for {
		answer, err := c.client.Bindings(p.agent)[1].Call(ctx, binding.GetTask, &a2apb.GetTaskRequest{Id: p.taskID})
		if !assert.NoError(c, err) || !assert.Nil(c, answer.Err, "task %s is lost", p.taskID) {
			return nil
		}
		task := answer.Result.(*a2apb.Task)
		if terminal(task.GetStatus().GetState()) {
			return task
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			assert.Fail(c, "a task does not end", "%v", task)
			return task
		}
	}
}

// stream: a stream told each version once, in order, however often it was cut,
// and what it told is the task.
func (c *checker) stream(p promise, task *a2apb.Task) {
	if p.events == nil {
		return
	}
	told, err := binding.Replay(p.events)
	if assert.NoError(c, err) {
		assert.NoError(c, binding.Compare(told, task))
	}
	if p.events[0].ID == "" {
		return
	}
	first, err := strconv.Atoi(p.events[0].ID)
	assert.NoError(c, err)
	for i, e := range p.events {
		assert.Equal(c, strconv.Itoa(first+i), e.ID, "task %s", p.taskID)
		assert.Equal(c, i == 0, e.GetTask() != nil, "task %s: a snapshot in a resumed stream", p.taskID)
	}
}

// noOthers: no message made a second task.
func (c *checker) noOthers(ctx context.Context, agent string, promises []promise) {
	want := map[string]bool{}
	for _, p := range promises {
		if p.agent == agent && p.taskID != "" {
			assert.False(c, want[p.taskID], "two messages have task %s", p.taskID)
			want[p.taskID] = true
		}
	}
	in := &a2apb.ListTasksRequest{PageSize: new(int32(100))}
	for {
		answer, err := c.client.Bindings(agent)[1].Call(ctx, binding.ListTasks, in)
		require.NoError(c, err)
		require.Nil(c, answer.Err)
		page := answer.Result.(*a2apb.ListTasksResponse)
		for _, task := range page.GetTasks() {
			assert.True(c, want[task.GetId()], "nobody was told of task %v", task)
		}
		if in.PageToken = page.GetNextPageToken(); in.GetPageToken() == "" {
			return
		}
	}
}
