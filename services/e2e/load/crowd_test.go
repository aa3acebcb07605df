package load_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/launch"
)

// crowdVariable, when set, makes the crowd as large as one cluster should bear.
const crowdVariable = "ERRAND_E2E_FULL_CROWD"

// crowd is how many tasks run and how many of them are followed. Half of these end
// while NATS is away, the others after it is back, at the pace of changes that a
// small machine bears.
type crowd struct{ tasks, followed int }

func size() crowd {
	if os.Getenv(crowdVariable) != "" {
		return crowd{tasks: 20_000, followed: 5000}
	}
	return crowd{tasks: 1000, followed: 500}
}

// atOnce is how many calls are made at the same time.
const atOnce = 32

// NATS restarts while very many tasks run and are followed. It keeps one consumer for
// each notifier and agent, not for each follower; all followers get the ends of
// their tasks, whether these came to be before NATS was back or after.
func TestManyFollowersOutliveARestartOfNATS(t *testing.T) {
	t.Parallel()
	const notifiers = 2
	cluster, client := start(t, func(cfg *launch.Config) { cfg.Notifiers, cfg.Gateways = notifiers, 2 })
	n, way := size(), client.Bindings("")[2]
	tasks := startTasks(t, way, n.tasks)
	nats := cluster.Process("nats")
	before := consumers(t, nats)

	live := make(chan struct{}, 4*n.followed)
	var all sync.WaitGroup
	ended := make([]time.Time, n.followed)
	for i := range n.followed {
		// Most over gRPC; each of the others has a connection of its own.
		f := &follower{way: client.Bindings("")[[]int{2, 2, 2, 0, 1}[i%5]], id: tasks[i], live: live}
		all.Go(func() {
			if err := f.follow(within(t)); err != nil {
				t.Error(err)
			}
			ended[i] = time.Now()
		})
	}
	for range n.followed {
		<-live
	}
	require.Equal(t, before, consumers(t, nats), "followers need no consumers")
	// Of events one, of work one of the agent.
	require.LessOrEqual(t, before, notifiers+1)

	require.NoError(t, nats.Kill(within(t)))
	half := n.followed / 2
	cancelAll(t, way, tasks[:half])
	begun := time.Now()
	require.NoError(t, nats.Start(within(t)))
	require.NoError(t, nats.Ready(within(t)))
	asked := cancelAll(t, way, tasks[half:n.followed])
	all.Wait()
	recovered := slices.MaxFunc(ended, time.Time.Compare).Sub(begun)
	require.LessOrEqual(t, consumers(t, nats), before)
	for _, p := range cluster.Processes() {
		require.NoError(t, p.Ready(within(t)))
	}
	t.Logf("%d tasks, %d followers: %d consumers, all followers told %s after the start of NATS, p99 of a change until its follower has it %s",
		n.tasks, n.followed, before, recovered.Round(time.Millisecond), late(asked, ended[half:]).Round(time.Millisecond))
}

// startTasks returns the ids of tasks that are being worked on.
func startTasks(t *testing.T, way binding.Binding, n int) []string {
	t.Helper()
	ids := make([]string, n)
	each(n, func(i int) {
		message := say("sleep 3600")
		message.Configuration.ReturnImmediately = true
		ids[i] = send(within(t), t, way, message).GetId()
	})
	one := int32(1)
	require.Eventually(t, func() bool {
		answer, err := way.Call(within(t), binding.ListTasks, &a2apb.ListTasksRequest{
			Status: a2apb.TaskState_TASK_STATE_WORKING, PageSize: &one,
		})
		return err == nil && answer.Err == nil && int(answer.Result.(*a2apb.ListTasksResponse).GetTotalSize()) == n
	}, patience, 200*time.Millisecond)
	return ids
}

// cancelAll cancels tasks and returns when each cancel was answered.
func cancelAll(t *testing.T, way binding.Binding, ids []string) []time.Time {
	t.Helper()
	answered := make([]time.Time, len(ids))
	each(len(ids), func(i int) {
		for ctx := within(t); ; {
			answer, err := way.Call(ctx, binding.CancelTask, &a2apb.CancelTaskRequest{Id: ids[i]})
			if err == nil && answer.Err == nil {
				answered[i] = time.Now()
				return
			}
			if err == nil && !retryable(answer.Err) || !pause(ctx) {
				t.Errorf("cancel: %v, %v", answer, err)
				return
			}
		}
	})
	return answered
}

// each calls do for all numbers below n, some at the same time.
func each(n int, do func(i int)) {
	numbers := make(chan int)
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for i := range numbers {
				do(i)
			}
		})
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	workers.Wait()
}

// late is the 99th of 100 delays between what was asked for and what was told.
func late(asked, told []time.Time) time.Duration {
	delays := make([]time.Duration, len(asked))
	for i := range asked {
		delays[i] = max(0, told[i].Sub(asked[i]))
	}
	slices.Sort(delays)
	return delays[len(delays)*99/100]
}

// consumers is how many JetStream consumers the server has.
func consumers(t *testing.T, nats *launch.Process) int {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := binding.Do(context.WithoutCancel(t.Context()), client, http.MethodGet, nats.OpsURL()+"/jsz", http.Header{}, nil)
	require.NoError(t, err)
	var state struct {
		Consumers *int `json:"consumers"`
	}
	require.NoError(t, json.Unmarshal(answer.Body, &state))
	require.NotNil(t, state.Consumers)
	return *state.Consumers
}
