package publish

import (
	"context"
	"testing"
	"time"

	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/lifecycle/lifecycletest"
	"github.com/errandhq/errand/pkg/telemetry"
	"github.com/errandhq/errand/pkg/testkit"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// newGauge returns a gauge and what it tells.
func (c *cluster) newGauge(k *clock, holder string) (*Gauge, func() map[string]float64) {
	c.t.Helper()
	reader := metric.NewManualReader()
	g, err := NewGauge(GaugeOptions{
		Holder: holder, Outbox: c.engine, Roles: c.engine, Now: k.now, Logger: testkit.Logger(c.t),
		Meter: metric.NewMeterProvider(metric.WithReader(reader)).Meter("test"),
	})
	require.NoError(c.t, err)
	return g, func() map[string]float64 { return c.gauges(reader) }
}

func (c *cluster) gauges(reader metric.Reader) map[string]float64 {
	c.t.Helper()
	var got metricdata.ResourceMetrics
	require.NoError(c.t, reader.Collect(c.t.Context(), &got))
	values := map[string]float64{}
	for _, scope := range got.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Gauge[int64]:
				values[m.Name] = float64(data.DataPoints[0].Value)
			case metricdata.Gauge[float64]:
				values[m.Name] = data.DataPoints[0].Value
			}
		}
	}
	return values
}

func TestGaugeKeepsTheServiceContract(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	lifecycletest.Stress(t, func(*testing.T) lifecycle.Service {
		g, _ := c.newGauge(&clock{}, "store-1")
		return g
	})
}

func TestBacklogAndAgeOfTheOutboxAreTold(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	k := &clock{}
	g, told := c.newGauge(k, "store-1")
	require.Empty(t, told(), "nothing is measured yet")
	require.NoError(t, g.measure(t.Context()))
	require.Equal(t, map[string]float64{telemetry.MetricOutboxBacklog: 0, telemetry.MetricOutboxAge: 0}, told())

	dead := c.died("store-1")
	c.commit(dead, newTask(), 7)
	k.advance(time.Minute)
	c.commit(dead, newTask(), 3)
	require.NoError(t, g.measure(t.Context()))
	require.InDelta(t, 10, told()[telemetry.MetricOutboxBacklog], 0)
	require.InDelta(t, 60, told()[telemetry.MetricOutboxAge], 5)

	k.advance(staleAfter)
	_, err := c.newRelay(k).relay(t.Context())
	require.NoError(t, err)
	require.NoError(t, g.measure(t.Context()))
	require.Equal(t, map[string]float64{telemetry.MetricOutboxBacklog: 0, telemetry.MetricOutboxAge: 0}, told())
}

// An outage is when the figures are needed, and when the relay gets nowhere.
func TestTheOutboxIsMeasuredWhileNothingCanBePublished(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	k := &clock{}
	dead := c.died("store-1")
	c.commit(dead, newTask(), 7)
	k.advance(staleAfter + time.Second)
	c.disconnect()
	relay := c.newRelay(k)
	g, told := c.newGauge(k, "store-1")
	for _, s := range []lifecycle.Service{relay, g} {
		require.NoError(t, s.Start(t.Context()))
		t.Cleanup(func() { require.NoError(t, s.Stop(context.Background())) })
	}
	require.Eventually(t, func() bool { return told()[telemetry.MetricOutboxBacklog] == 7 }, patience, soon)
	require.Greater(t, told()[telemetry.MetricOutboxAge], 10.0)
}

// Figures of somebody who no longer measures would stand for ever.
func TestOldFiguresAreNotTold(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	g, told := c.newGauge(&clock{}, "store-1")
	require.NoError(t, g.measure(t.Context()))
	require.NotEmpty(t, told())
	g.measured = g.measured.Add(-lagFresh)
	require.Empty(t, told())
}
