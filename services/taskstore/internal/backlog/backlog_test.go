package backlog_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/lifecycle/lifecycletest"
	"github.com/errandhq/errand/pkg/testkit"
	"github.com/errandhq/errand/services/taskstore/internal/backlog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// queue is the backlog of one agent.
type queue struct {
	waiting, counts atomic.Int64
	err             error
}

func (q *queue) count(context.Context, string) (int, error) {
	q.counts.Add(1)
	return int(q.waiting.Load()), q.err
}

func newGauge(t *testing.T, q *queue) *backlog.Gauge {
	t.Helper()
	return backlog.New(backlog.Options{
		Agents: &config.Agents{Agents: []config.Agent{{Name: "echo", MaxQueued: 100}, {Name: "busy", MaxQueued: 1}, {Name: "free"}}},
		Count:  q.count, Logger: testkit.Logger(t),
	})
}

// test runs a started gauge in a bubble of virtual time.
func test(t *testing.T, q *queue, run func(t *testing.T, g *backlog.Gauge)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := newGauge(t, q)
		require.NoError(t, g.Start(t.Context()))
		run(t, g)
		require.NoError(t, g.Stop(context.Background()))
	})
}

// add offers n tasks, a millisecond apart, and returns how many were taken.
func add(g *backlog.Gauge, q *queue, n int) int {
	taken := 0
	for range n {
		if !g.Full("echo") {
			q.waiting.Add(1)
			taken++
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
	}
	return taken
}

func TestAFullQueueTakesNoMoreUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	q := &queue{}
	test(t, q, func(t *testing.T, g *backlog.Gauge) {
		taken := add(g, q, 1000)
		require.GreaterOrEqual(t, taken, 100)
		require.LessOrEqual(t, taken, 201, "what comes between two counts")
		require.False(t, g.Full("free"), "an agent without a bound")
		require.False(t, g.Full("gone"), "an agent that left the file")
		q.waiting.Store(0)
		add(g, q, 200)
		require.Positive(t, q.waiting.Load())
	})
}

func TestAQueueThatHasDrainedRefusesNobody(t *testing.T) {
	t.Parallel()
	q := &queue{}
	test(t, q, func(t *testing.T, g *backlog.Gauge) {
		add(g, q, 300)
		require.True(t, g.Full("echo"))
		time.Sleep(time.Second)
		q.waiting.Store(0)
		time.Sleep(time.Second)
		require.False(t, g.Full("echo"))
	})
}

func TestABusyAgentLeavesAnothersTasksCounted(t *testing.T) {
	t.Parallel()
	q := &queue{}
	test(t, q, func(t *testing.T, g *backlog.Gauge) {
		taken := 0
		for range 1000 {
			g.Full("busy")
			taken += add(g, q, 1)
			time.Sleep(19 * time.Millisecond)
		}
		require.LessOrEqual(t, taken, 201, "slower than it would take to fill the room between two counts")
	})
}

func TestAQueueThatDrainsAsFastIsNeverFull(t *testing.T) {
	t.Parallel()
	q := &queue{}
	test(t, q, func(t *testing.T, g *backlog.Gauge) {
		for range 10_000 {
			require.False(t, g.Full("echo"))
			time.Sleep(time.Millisecond)
		}
		require.LessOrEqual(t, q.counts.Load(), int64(101), "counts keep their distance")
	})
}

func TestWhileNobodyCanCountAllIsTaken(t *testing.T) {
	t.Parallel()
	q := &queue{err: errors.New("away")}
	test(t, q, func(t *testing.T, g *backlog.Gauge) {
		require.Equal(t, 1000, add(g, q, 1000))
	})
}

func TestTheGaugeKeepsTheServiceContract(t *testing.T) {
	t.Parallel()
	lifecycletest.Stress(t, func(t *testing.T) lifecycle.Service { return newGauge(t, &queue{}) })
}
