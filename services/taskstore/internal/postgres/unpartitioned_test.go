package postgres_test

import (
	"testing"
	"time"

	"github.com/errandhq/errand/pkg/telemetry"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/errandhq/errand/services/taskstore/internal/postgres"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

func TestEventsWithoutAPartitionAreCounted(t *testing.T) {
	t.Parallel()
	reader := metric.NewManualReader()
	d := openWith(t, newURL(t), postgres.Options{MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))})
	require.Empty(t, unpartitioned(t, reader), "nobody has counted yet")
	at := now().Add(90 * 24 * time.Hour)
	task := queuedTask(at)
	d.update(t, &engine.Changes{
		InsertTasks: []*engine.Task{task},
		Events:      []engine.Event{event(task, 1, 1), event(task, 2, 2), event(task, 3, 3)},
	})
	require.NoError(t, d.PurgeEvents(t.Context(), at, at))
	require.Equal(t, []int64{3}, unpartitioned(t, reader))
	require.NoError(t, d.PurgeEvents(t.Context(), at, at.Add(time.Second)))
	require.Equal(t, []int64{0}, unpartitioned(t, reader))
}

// unpartitioned is what the metric tells, if it tells anything.
func unpartitioned(t *testing.T, reader metric.Reader) []int64 {
	t.Helper()
	var got metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &got))
	var values []int64
	for _, scope := range got.ScopeMetrics {
		for _, m := range scope.Metrics {
			if gauge, ok := m.Data.(metricdata.Gauge[int64]); ok && m.Name == telemetry.MetricEventsUnpartitioned {
				values = append(values, gauge.DataPoints[0].Value)
			}
		}
	}
	return values
}
