package sqlite_test

import (
	"sync"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/stretchr/testify/require"
)

// A heartbeat that waits its turn behind large transactions would lose the leases
// of an executor that lives.
func TestAHeartbeatIsBehindNoMoreThanTheWriteThatRuns(t *testing.T) {
	t.Parallel()
	e, _ := open(t)
	task := newTask()
	task.State, task.Phase, task.Holder, task.LeaseEpoch = a2apb.TaskState_TASK_STATE_WORKING, engine.PhaseLeased, "h", 1
	lease := engine.Lease{LeaseRef: engine.LeaseRef{TaskID: task.ID, Epoch: 1}, Holder: "h", ExpiresAt: began}
	require.NoError(t, update(t.Context(), e, &engine.Changes{InsertTasks: []*engine.Task{task}, PutLeases: []engine.Lease{lease}}))

	running, end := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	var order []string
	note := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, what)
	}
	var writes sync.WaitGroup
	write := func(then func()) {
		writes.Go(func() {
			require.NoError(t, e.Update(t.Context(), engine.Selection{}, func(*engine.Loaded) (*engine.Changes, error) {
				then()
				return &engine.Changes{}, nil
			}))
		})
	}
	write(func() {
		note("running")
		close(running)
		<-end
	})
	<-running
	for range 8 {
		write(func() { note("waiting") })
	}
	<-time.After(50 * time.Millisecond) // so that they do wait
	writes.Go(func() {
		renewals, err := e.RenewLeases(t.Context(), "h", []engine.LeaseRef{lease.LeaseRef}, began.Add(time.Minute))
		require.NoError(t, err)
		require.True(t, renewals[0].Held)
		note("heartbeat")
	})
	<-time.After(50 * time.Millisecond)
	close(end)
	writes.Wait()
	require.Len(t, order, 10)
	// The next write may begin before the heartbeat has told that it ended.
	require.Contains(t, order[1:3], "heartbeat", "%v", order)
}
