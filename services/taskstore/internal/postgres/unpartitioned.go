package postgres

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/errandhq/errand/pkg/telemetry"
	"go.opentelemetry.io/otel/metric"
)

// unpartitionedFresh is how long a count is told: who no longer counts says
// nothing.
const unpartitionedFresh = 5 * time.Minute

// unpartitioned tells how many events lie in the default partition.
type unpartitioned struct {
	mu   sync.Mutex
	rows int64
	at   time.Time
}

func newUnpartitioned(meters metric.MeterProvider) (*unpartitioned, error) {
	u := &unpartitioned{}
	_, err := meters.Meter(telemetry.Scope).Int64ObservableGauge(telemetry.MetricEventsUnpartitioned,
		metric.WithDescription("Events in the default partition, counted up to 10,000: nobody made partitions in time."),
		metric.WithInt64Callback(u.observe))
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", telemetry.MetricEventsUnpartitioned, err)
	}
	return u, nil
}

func (u *unpartitioned) counted(rows int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.rows, u.at = rows, time.Now()
}

func (u *unpartitioned) observe(_ context.Context, observer metric.Int64Observer) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.at.IsZero() && time.Since(u.at) < unpartitionedFresh {
		observer.Observe(u.rows)
	}
	return nil
}
