// Package lease_test kills, pauses and cuts off executors, which are processes of
// their own, and looks who may write then, how soon another one takes over, and how
// soon a cancel arrives.
//
// ERRAND_KILLS and ERRAND_CANCELS set how often; the times are printed.
package lease_test

import (
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"

	"github.com/errandhq/errand/services/e2e/internal/harness"
)

// What the tests run.
var programs struct {
	errand, witness string
	edge            harness.EdgePrograms
}

func TestMain(m *testing.M) {
	s := harness.NewSuite()
	programs.errand = harness.BuildErrand(s)
	programs.witness = harness.Build(s, ".", "github.com/errandhq/errand/services/e2e/lease/witness")
	programs.edge = harness.BuildEdge(s)
	goleak.VerifyTestMain(s.Around(m))
}

func setting(t *testing.T, name string, otherwise int) int {
	t.Helper()
	given := os.Getenv(name)
	if given == "" {
		return otherwise
	}
	n, err := strconv.Atoi(given)
	require.NoError(t, err, name)
	return n
}

// percentiles prints times and returns the middle one and the longest.
func percentiles(t *testing.T, what string, times []time.Duration) (median, longest time.Duration) {
	t.Helper()
	slices.Sort(times)
	at := func(share int) time.Duration { return times[(len(times)-1)*share/100].Round(time.Millisecond) }
	t.Logf("%s, %d times: p50 %s, p99 %s, max %s", what, len(times), at(50), at(99), at(100))
	return times[len(times)/2], times[len(times)-1]
}

// log reads a task's event log, which has each version once.
func (c *cluster) log(id string) (events []*eventv1.Event, version int64) {
	c.Helper()
	answer, err := harness.TaskStore(c, c.backend.TaskStoreAddr).ListEvents(c.Context(), &taskstorev1.ListEventsRequest{
		Scope: &taskstorev1.Scope{Tenant: "default", Agent: witness, Subject: "anonymous"}, TaskId: id,
	})
	require.NoError(c, err)
	for i, e := range answer.GetEvents() {
		require.EqualValues(c, i+1, e.GetVersion())
	}
	return answer.GetEvents(), int64(len(answer.GetEvents()))
}

func TestAnotherExecutorTakesOverWithinALeaseAndATick(t *testing.T) {
	t.Parallel()
	c := start(t)
	executors := c.executors(2)
	var times []time.Duration
	for range setting(t, "ERRAND_KILLS", 3) {
		id := c.send("work 60 0")
		victim := c.await(id, 1, "begin").pid
		p := executors[victim]
		p.Kill(t)
		killed := time.Now()
		second := c.await(id, 2, "begin")
		require.NotEqual(t, victim, second.pid)
		times = append(times, second.at.Sub(killed))
		done := c.awaitState(id, a2apb.TaskState_TASK_STATE_COMPLETED)
		require.Equal(t, strconv.Itoa(second.pid), result(done))
		p.Start(t)
		delete(executors, victim)
		executors[p.PID()] = p
	}
	_, longest := percentiles(t, "taken over after a kill (lease "+lease.String()+", tick "+tick.String()+")", times)
	// The claim itself takes its time too, on a machine that is busy with tests.
	require.Less(t, longest, lease+tick+500*time.Millisecond)
}
