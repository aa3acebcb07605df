package queue_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/errandhq/errand/pkg/queue"
	"github.com/errandhq/errand/pkg/telemetry"
	"github.com/errandhq/errand/pkg/testkit"
)

func TestTheQueueCountsWhatPassesThroughIt(t *testing.T) {
	t.Parallel()
	reader := sdkmetric.NewManualReader()
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter(telemetry.Scope)
	nc := testkit.NATS(t)
	p, err := queue.NewPublisher(nc, queue.PublisherConfig{Meter: meter})
	require.NoError(t, err)
	c := newConsumer(t, nc, func(cfg *queue.ConsumerConfig) { cfg.Meter = meter })
	require.NoError(t, queue.EnsureStream(within(t), nc, queue.StreamConfig{}))
	require.NoError(t, nc.Publish("errand.work.writer.default", []byte("poison")))
	publish(t, p, works("default", 3)...)
	publish(t, p, work("default", 1))
	all(t, c, 3)
	requireEmpty(t, nc)

	counts := map[string]int64{}
	var collected metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(within(t), &collected))
	for _, metric := range collected.ScopeMetrics[0].Metrics {
		sum, ok := metric.Data.(metricdata.Sum[int64])
		require.True(t, ok)
		for _, point := range sum.DataPoints {
			outcome, _ := point.Attributes.Value(attribute.Key(telemetry.AttrOutcome))
			reason, _ := point.Attributes.Value(attribute.Key(telemetry.AttrReason))
			counts[metric.Name+" "+outcome.AsString()+reason.AsString()] += point.Value
		}
	}
	require.Equal(t, map[string]int64{
		telemetry.MetricWorkPublished + " stored":    3,
		telemetry.MetricWorkPublished + " duplicate": 1,
		telemetry.MetricWorkDelivered + " ":          3,
		telemetry.MetricWorkPoison + " unreadable":   1,
	}, counts)
}
