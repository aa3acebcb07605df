package publish

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/telemetry"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/errandhq/errand/services/taskstore/internal/role"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

const (
	// gaugeRole is the role of the one who measures for a cluster: not the relay,
	// which may be stuck, and then the figures are needed most.
	gaugeRole = "outbox gauge"
	// The backlog is counted up to here.
	lagAtMost = 100_000
	lagEvery  = 5 * time.Second
	// What was measured is told for this long: who has lost the role says nothing.
	lagFresh = 3 * lagEvery
)

// GaugeOptions is what a Gauge needs. All fields but Meter are required.
type GaugeOptions struct {
	// Names this process.
	Holder string
	Outbox engine.Outbox
	Roles  role.Keeper
	Now    func() time.Time
	Logger *slog.Logger
	Meter  metric.Meter
}

// Gauge measures how far publishing is behind the store. Any number may run; one
// at a time measures. It is a lifecycle.Service.
type Gauge struct {
	*lifecycle.Loop
	GaugeOptions

	mu       sync.Mutex
	measured time.Time
	backlog  int
	age      time.Duration
}

// NewGauge returns a gauge that isn't running yet.
func NewGauge(o GaugeOptions) (*Gauge, error) {
	if o.Meter == nil {
		o.Meter = noop.Meter{}
	}
	g := &Gauge{GaugeOptions: o}
	backlog, err := o.Meter.Int64ObservableGauge(telemetry.MetricOutboxBacklog,
		metric.WithDescription("Events of the log that are not known to be published."))
	if err != nil {
		return nil, fmt.Errorf("create the outbox's metrics: %w", err)
	}
	age, err := o.Meter.Float64ObservableGauge(telemetry.MetricOutboxAge, metric.WithUnit("s"),
		metric.WithDescription("Age of the oldest event that is not known to be published."))
	if err != nil {
		return nil, fmt.Errorf("create the outbox's metrics: %w", err)
	}
	_, err = o.Meter.RegisterCallback(func(_ context.Context, observer metric.Observer) error {
		g.observe(observer, backlog, age)
		return nil
	}, backlog, age)
	if err != nil {
		return nil, fmt.Errorf("register the outbox's metrics: %w", err)
	}
	g.Loop = role.NewLoop(role.Options{
		Role: gaugeRole, Holder: o.Holder, Keeper: o.Roles, Now: o.Now, Logger: o.Logger,
	}, g.work)
	return g, nil
}

func (g *Gauge) observe(observer metric.Observer, backlog metric.Int64Observable, age metric.Float64Observable) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.measured.IsZero() || time.Since(g.measured) > lagFresh {
		return
	}
	observer.ObserveInt64(backlog, int64(g.backlog))
	observer.ObserveFloat64(age, g.age.Seconds())
}

func (g *Gauge) work(ctx context.Context) time.Duration {
	if err := g.measure(ctx); err != nil && ctx.Err() == nil {
		g.Logger.WarnContext(ctx, "could not measure the outbox", "error", err)
	}
	return lagEvery
}

func (g *Gauge) measure(ctx context.Context) error {
	n, oldest, err := g.Outbox.OutboxLag(ctx, lagAtMost)
	if err != nil {
		return fmt.Errorf("read the outbox's lag: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.measured, g.backlog, g.age = time.Now(), n, 0
	if n > 0 {
		g.age = max(g.Now().Sub(oldest), 0)
	}
	return nil
}
