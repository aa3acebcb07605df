package publish

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/lifecycle/lifecycletest"
	"github.com/errandhq/errand/pkg/testkit"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// clock is a clock that a test can move.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time             { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) advance(by time.Duration)   { c.ahead.Add(int64(by)) }
func (c *cluster) newRelay(k *clock) *Relay { return c.newRelayNamed(k, "relay-1", nil) }

func (c *cluster) newRelayNamed(k *clock, holder string, meters *metric.MeterProvider) *Relay {
	c.t.Helper()
	o := RelayOptions{
		Holder: holder, Outbox: c.engine, Roles: c.engine, Events: c.events, Now: k.now, Logger: testkit.Logger(c.t),
	}
	if meters != nil {
		o.Meter = meters.Meter("test")
	}
	r, err := NewRelay(o)
	require.NoError(c.t, err)
	return r
}

// died is a publisher that was registered and then committed without publishing.
func (c *cluster) died(name string) *Publisher {
	c.t.Helper()
	p := c.newPublisher(name)
	require.NoError(c.t, p.beat(c.t.Context()))
	return p
}

func TestRelayKeepsTheServiceContract(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	lifecycletest.Stress(t, func(*testing.T) lifecycle.Service { return c.newRelay(&clock{}) })
}

func TestWhatADeadPublisherLeftIsPublishedInOrderAndOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	k := &clock{}
	dead := c.died("store-1")
	tasks := []*task{newTask(), newTask()}
	live := c.read(tasks...)
	for range 400 {
		c.commit(dead, tasks[0], 1)
		c.commit(dead, tasks[1], 1)
	}
	relays := []*Relay{c.newRelay(k), c.newRelayNamed(k, "relay-2", nil)}
	for _, r := range relays {
		require.NoError(t, r.Start(t.Context()))
		t.Cleanup(func() { require.NoError(t, r.Stop(context.Background())) })
	}
	more, err := relays[0].relay(t.Context())
	require.NoError(t, err)
	require.False(t, more)
	require.Empty(t, c.stored(), "it may still live")

	k.advance(staleAfter + time.Second)
	c.requireStored(tasks...)
	for _, task := range tasks {
		require.Eventually(t, func() bool { return len(live.of(task)) == 400 }, patience, soon)
		require.IsIncreasing(t, live.of(task))
	}
	c.requireRecorded("store-1", 800)

	k.advance(forgetAfter)
	c.requireRecorded("store-1", -1)
}

func TestAPausedPublisherGoesOnAfterARelayHasTakenOver(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	k := &clock{}
	k.advance(staleAfter + time.Second)
	paused := c.died("store-1")
	task := newTask()
	c.commit(paused, task, 3)
	r := c.newRelay(k)
	_, err := r.relay(t.Context())
	require.NoError(t, err)
	c.requireStored(task)

	c.start(paused)
	c.commit(paused, task, 1)
	c.requireStored(task)
	c.requireRecorded("store-1", 4)
}

func TestTheRelayMeasuresTheOutbox(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	k := &clock{}
	dead := c.died("store-1")
	c.commit(dead, newTask(), 7)
	k.advance(5 * time.Second)
	reader := metric.NewManualReader()
	r := c.newRelayNamed(k, "relay-1", metric.NewMeterProvider(metric.WithReader(reader)))
	require.NoError(t, r.lag.measure(t.Context(), c.engine, k.now))

	var got metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &got))
	values := map[string]float64{}
	for _, m := range got.ScopeMetrics[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Gauge[int64]:
			values[m.Name] = float64(data.DataPoints[0].Value)
		case metricdata.Gauge[float64]:
			values[m.Name] = data.DataPoints[0].Value
		}
	}
	require.InDelta(t, 7, values["errand.outbox.backlog"], 0)
	require.InDelta(t, 5, values["errand.outbox.age"], 4)
}
