package load_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/launch"
)

// stopTime is well below what a process gets to stop, on a busy machine.
const stopTime = 20 * time.Second

// Three gateways are replaced one after the other. Senders are told nothing worse
// than to come again, streams go on elsewhere without a hole, and tasks notice
// nothing: each message has one task, which ran once.
func TestGatewaysAreReplacedUnderLoad(t *testing.T) {
	t.Parallel()
	cluster, client := start(t, func(cfg *launch.Config) { cfg.Gateways = 3 })
	ways := client.Bindings("")
	var followers []*follower
	var readers sync.WaitGroup
	done := make(chan struct{})
	for i := range 12 {
		started := say("chunks 300 100")
		started.Configuration.ReturnImmediately = true
		f := &follower{way: ways[i%3], id: send(within(t), t, ways[i%3], started).GetId()}
		followers = append(followers, f)
		readers.Go(func() {
			if err := f.follow(within(t)); err != nil {
				t.Error(err)
			}
		})
	}
	contextID := "c-" + uuid.NewString()
	var senders sync.WaitGroup
	var sent atomic.Int64
	for i := range 6 {
		senders.Go(func() {
			for running(done) {
				message := say("chunks 3 50")
				message.Message.ContextId = contextID
				if got := send(within(t), t, ways[i%3], message); got.GetStatus().GetState() != task.Completed && got != nil {
					t.Errorf("a task ended as %s", got.GetStatus().GetState())
				}
				sent.Add(1)
			}
		})
	}
	for i := range 3 {
		replace(t, cluster.Process("gateway-"+strconv.Itoa(i)))
	}
	close(done)
	senders.Wait()
	readers.Wait()
	require.Greater(t, sent.Load(), int64(30))
	answer, err := ways[0].Call(within(t), binding.ListTasks, &a2apb.ListTasksRequest{ContextId: contextID})
	require.NoError(t, err)
	require.EqualValues(t, sent.Load(), answer.Result.(*a2apb.ListTasksResponse).GetTotalSize(), "one task for each message")
	moved := 0
	for _, f := range followers {
		requireWhole(t, f)
		moved += f.streams - 1
	}
	require.Positive(t, moved, "streams went on elsewhere")
	t.Logf("%d messages, %d streams moved", sent.Load(), moved)
}

func running(done <-chan struct{}) bool {
	select {
	case <-done:
		return false
	default:
		return true
	}
}

// replace stops a gateway as a roll-out does, and starts another in its place.
func replace(t *testing.T, p *launch.Process) {
	t.Helper()
	begun := time.Now()
	require.NoError(t, p.Terminate(within(t)))
	require.Less(t, time.Since(begun), stopTime)
	t.Logf("%s stopped in %s", p.Name(), time.Since(begun).Round(time.Millisecond))
	require.NoError(t, p.Start(within(t)))
	require.NoError(t, p.Ready(within(t)))
}

// send repeats a message under its id until it is answered.
func send(ctx context.Context, t *testing.T, way binding.Binding, message *a2apb.SendMessageRequest) *a2apb.Task {
	for {
		answer, err := way.Call(ctx, binding.SendMessage, message)
		switch {
		case err == nil && answer.Err == nil:
			return answer.Result.(*a2apb.SendMessageResponse).GetTask()
		case err == nil && !retryable(answer.Err):
			t.Errorf("a sender over %s was told: %v", way.Name(), answer.Err)
			return nil
		case err != nil:
			t.Logf("a connection broke over %s: %v", way.Name(), err)
		}
		if !pause(ctx) {
			t.Errorf("no answer over %s: %v", way.Name(), context.Cause(ctx))
			return nil
		}
	}
}

// requireWhole: what the streams of a follower told together is the task.
func requireWhole(t *testing.T, f *follower) {
	t.Helper()
	answer, err := f.way.Call(within(t), binding.GetTask, &a2apb.GetTaskRequest{Id: f.id})
	require.NoError(t, err)
	stored := answer.Result.(*a2apb.Task)
	require.Equal(t, task.Completed, stored.GetStatus().GetState())
	told, err := binding.Replay(f.events)
	require.NoError(t, err)
	require.NoError(t, binding.Compare(told, stored))
}
