package reaper

import (
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// park makes a claimed task ask its sender.
func (c *cluster) park(claim *taskstorev1.Claim) {
	c.Helper()
	answer, err := c.store.WriteEvents(c.Context(), &taskstorev1.WriteEventsRequest{Holder: holder, Writes: []*taskstorev1.TaskWrite{{
		Lease:          &taskstorev1.LeaseRef{TaskId: claim.GetTask().GetId(), LeaseEpoch: claim.GetLeaseEpoch()},
		HandledVersion: 1,
		Events: []*taskstorev1.TaskEvent{{Kind: &taskstorev1.TaskEvent_StatusUpdate{StatusUpdate: &a2apb.TaskStatusUpdateEvent{
			Status: &a2apb.TaskStatus{State: task.InputRequired},
		}}}},
	}}})
	require.NoError(c, err)
	require.Zero(c, answer.GetResults()[0].GetRefusal())
}

func TestTasksOfAnAgentThatLeftTheFileEndByTheDefaults(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	ids := c.accept(3)
	parked, running, queued := ids[0], ids[1], ids[2]
	c.park(c.claim(parked).GetClaim())
	require.NotNil(t, c.claim(running).GetClaim())
	c.Agents = &config.Agents{}
	c.clock.advance(time.Hour + turnMargin + time.Second)
	c.do(c.expireTurns)
	require.Equal(t, task.Failed, c.task(running).State)
	c.do(c.expireParked)
	require.Equal(t, task.InputRequired, c.task(parked).State)
	c.clock.advance(7 * 24 * time.Hour)
	c.do(c.expireParked)
	require.Equal(t, task.Failed, c.task(parked).State)
	c.do(c.expireTurns)
	require.Equal(t, task.Submitted, c.task(queued).State, "the agent may come back")
	require.NotNil(t, c.claim(queued).GetClaim())
}

func TestQueuesThatNoExecutorServesAreReported(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.accept(3)
	reader := metric.NewManualReader()
	options := c.Options
	options.Meter = metric.NewMeterProvider(metric.WithReader(reader)).Meter("test")
	var err error
	c.Reaper, err = New(options)
	require.NoError(t, err)
	unserved := func() int64 {
		c.do(c.reportUnserved)
		var all metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(t.Context(), &all))
		gauge, ok := all.ScopeMetrics[0].Metrics[0].Data.(metricdata.Gauge[int64])
		require.True(t, ok)
		return gauge.DataPoints[0].Value
	}
	require.Zero(t, unserved())
	c.Agents = &config.Agents{}
	require.EqualValues(t, 1, unserved())
}

func TestALapsedLeaseOfAnAgentThatLeftTheFileIsTakenAway(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	id := c.accept(1)[0]
	require.NotNil(t, c.claim(id).GetClaim())
	c.Agents = &config.Agents{}
	c.clock.advance(lease + time.Second)
	c.do(c.expireLeases)
	require.Equal(t, map[int64]int{2: 1}, c.enqueueCounts([]string{id}))
}

func TestAJumpOfTheClockTakesNoLeaseFromALivingHolder(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	ids := c.accept(2)
	living, dead := c.claim(ids[0]).GetClaim(), c.claim(ids[1]).GetClaim()
	require.NotNil(t, dead)
	now := time.Now()
	c.clock.jump.Store(&now)
	c.clock.advance(10 * time.Minute)
	c.do(c.expireLeases)
	c.renew(living)
	require.Equal(t, map[int64]int{1: 2}, c.enqueueCounts(ids))
	before := now.Add(-time.Minute) // as if a longest lease had passed since
	c.clock.jump.Store(&before)
	c.do(c.expireLeases)
	require.Equal(t, map[int64]int{1: 1}, c.enqueueCounts(ids[:1]))
	require.Equal(t, map[int64]int{2: 1}, c.enqueueCounts(ids[1:]))
}
