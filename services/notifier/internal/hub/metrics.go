package hub

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/metric"

	"github.com/errandhq/errand/pkg/telemetry"
)

// metrics count what a hub does for all its streams.
type metrics struct {
	events, logReads, gaps metric.Int64Counter
}

func newMetrics(meter metric.Meter, watches func() int64) (*metrics, error) {
	events, err1 := meter.Int64Counter(telemetry.MetricWatchEvents,
		metric.WithDescription("Events that were sent to gateways."))
	logReads, err2 := meter.Int64Counter(telemetry.MetricWatchLogRead,
		metric.WithDescription("Reads of the event log for events that did not arrive."))
	gaps, err3 := meter.Int64Counter(telemetry.MetricWatchGaps,
		metric.WithDescription("Watches that went on without events that the log no longer holds."))
	_, err4 := meter.Int64ObservableUpDownCounter(telemetry.MetricWatches,
		metric.WithDescription("Tasks that gateways watch, each counted once for a gateway."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(watches())
			return nil
		}))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, fmt.Errorf("create the metrics of watches: %w", err)
	}
	return &metrics{events: events, logReads: logReads, gaps: gaps}, nil
}
