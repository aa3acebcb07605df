package conformance_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/harness"
)

// patience bounds what a test waits for; nothing that works takes as long.
const patience = 60 * time.Second

// caller calls one agent over one binding for one test.
type caller struct {
	binding.Binding
	t       *testing.T
	cluster *harness.Cluster
	agent   string
}

// eachEngine runs test on each database.
func eachEngine(t *testing.T, test func(t *testing.T, cluster *harness.Cluster)) {
	t.Helper()
	for engine, cluster := range clusters {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			test(t, cluster())
		})
	}
}

// each runs test over each binding on each database.
func each(t *testing.T, agent string, test func(t *testing.T, c *caller)) {
	t.Helper()
	eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
		t.Helper()
		for _, c := range callers(t, cluster, agent) {
			t.Run(c.Name(), func(t *testing.T) {
				t.Parallel()
				test(t, c.in(t))
			})
		}
	})
}

// eachJSON runs test over the two bindings that carry JSON.
func eachJSON(t *testing.T, agent string, test func(t *testing.T, c *caller, b binding.JSON)) {
	t.Helper()
	eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
		t.Helper()
		for _, c := range callers(t, cluster, agent)[:2] {
			b, ok := c.Binding.(binding.JSON)
			require.True(t, ok)
			t.Run(c.Name(), func(t *testing.T) {
				t.Parallel()
				test(t, c.in(t), b)
			})
		}
	})
}

// callers are JSON-RPC, REST and gRPC, in this order.
func callers(t *testing.T, cluster *harness.Cluster, agent string) []*caller {
	t.Helper()
	all := make([]*caller, 0, 3)
	for _, b := range cluster.Client.Bindings(agent) {
		all = append(all, &caller{Binding: b, t: t, cluster: cluster, agent: agent})
	}
	return all
}

// in is the same caller for another test, of which t usually is a subtest.
func (c *caller) in(t *testing.T) *caller {
	other := *c
	other.t = t
	return &other
}

// repeatedAtOnce is how many repetitions of a test run at the same time.
const repeatedAtOnce = 16

// repeat runs test n times, many at once whatever -parallel says: a race shows
// itself to a crowd.
func (c *caller) repeat(t *testing.T, n int, test func(t *testing.T, c *caller, i int)) {
	t.Helper()
	numbers := make(chan int)
	var workers sync.WaitGroup
	for range repeatedAtOnce {
		workers.Go(func() {
			for i := range numbers {
				t.Run(strconv.Itoa(i), func(t *testing.T) { test(t, c.in(t), i) })
			}
		})
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	workers.Wait()
}

// to is the same binding to another agent.
func (c *caller) to(agent string) *caller {
	for _, other := range callers(c.t, c.cluster, agent) {
		if other.Name() == c.Name() {
			return other
		}
	}
	panic("no binding " + c.Name())
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// ask calls and takes any answer, refusals too.
func (c *caller) ask(op binding.Op, in proto.Message, options ...binding.Option) *binding.Answer {
	c.t.Helper()
	answer, err := c.Call(within(c.t), op, in, options...)
	require.NoError(c.t, err)
	return answer
}

// call calls and wants a result.
func call[T proto.Message](c *caller, op binding.Op, in proto.Message, options ...binding.Option) T {
	c.t.Helper()
	answer := c.ask(op, in, options...)
	require.Nil(c.t, answer.Err, "%s was refused", op)
	result, ok := answer.Result.(T)
	require.True(c.t, ok, "%s answered with %T", op, answer.Result)
	return result
}

// send wants a task.
func (c *caller) send(in *a2apb.SendMessageRequest, options ...binding.Option) *a2apb.Task {
	c.t.Helper()
	answer := call[*a2apb.SendMessageResponse](c, binding.SendMessage, in, options...)
	require.NotNil(c.t, answer.GetTask(), "want a task, got %v", answer)
	return answer.GetTask()
}

// reply wants a direct Message.
func (c *caller) reply(in *a2apb.SendMessageRequest, options ...binding.Option) *a2apb.Message {
	c.t.Helper()
	answer := call[*a2apb.SendMessageResponse](c, binding.SendMessage, in, options...)
	require.NotNil(c.t, answer.GetMessage(), "want a message, got %v", answer)
	return answer.GetMessage()
}

func (c *caller) get(id string) *a2apb.Task {
	c.t.Helper()
	return call[*a2apb.Task](c, binding.GetTask, &a2apb.GetTaskRequest{Id: id})
}

func (c *caller) cancel(id string) *a2apb.Task {
	c.t.Helper()
	return call[*a2apb.Task](c, binding.CancelTask, &a2apb.CancelTaskRequest{Id: id})
}

func (c *caller) list(in *a2apb.ListTasksRequest) *a2apb.ListTasksResponse {
	c.t.Helper()
	return call[*a2apb.ListTasksResponse](c, binding.ListTasks, in)
}

// await reads the task until it is in one of the states.
func (c *caller) await(id string, states ...a2apb.TaskState) *a2apb.Task {
	c.t.Helper()
	for begun := time.Now(); time.Since(begun) < patience; pause(c.t, 20) {
		if got := c.get(id); slices.Contains(states, state(got)) {
			return got
		}
	}
	require.Fail(c.t, "a task does not end as it should", "%s: want %v", id, states)
	return nil
}
