package publish

import (
	"context"
	"fmt"
	"time"

	"github.com/errandhq/errand/pkg/telemetry"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

const (
	// The backlog is counted up to here.
	lagAtMost = 100_000
	// How often it is measured, by whoever holds the relay's role.
	lagEvery = 5 * time.Second
)

// lag tells how far publishing is behind the store.
type lag struct {
	events   metric.Int64Gauge
	age      metric.Float64Gauge
	measured time.Time
}

func newLag(meter metric.Meter) (*lag, error) {
	if meter == nil {
		meter = noop.Meter{}
	}
	backlog, err := meter.Int64Gauge(telemetry.MetricOutboxBacklog,
		metric.WithDescription("Events of the log that are not known to be published."))
	if err != nil {
		return nil, fmt.Errorf("create the outbox's metrics: %w", err)
	}
	age, err := meter.Float64Gauge(telemetry.MetricOutboxAge, metric.WithUnit("s"),
		metric.WithDescription("Age of the oldest event that is not known to be published."))
	if err != nil {
		return nil, fmt.Errorf("create the outbox's metrics: %w", err)
	}
	return &lag{events: backlog, age: age}, nil
}

func (l *lag) measure(ctx context.Context, outbox engine.Outbox, now func() time.Time) error {
	if time.Since(l.measured) < lagEvery {
		return nil
	}
	n, oldest, err := outbox.OutboxLag(ctx, lagAtMost)
	if err != nil {
		return err
	}
	l.measured = time.Now()
	age := time.Duration(0)
	if n > 0 {
		age = max(now().Sub(oldest), 0)
	}
	l.events.Record(ctx, int64(n))
	l.age.Record(ctx, age.Seconds())
	return nil
}
