package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/pkg/telemetry"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Metrics count the turns of all agents of a process.
type Metrics struct {
	duration  metric.Float64Histogram
	abandoned metric.Int64UpDownCounter
}

// NewMetrics creates the metrics.
func NewMetrics(meter metric.Meter) (*Metrics, error) {
	duration, err1 := meter.Float64Histogram(telemetry.MetricTurnDuration, metric.WithUnit("s"),
		metric.WithDescription("From the claim of a task to its end, by outcome."))
	abandoned, err2 := meter.Int64UpDownCounter(telemetry.MetricHandlersAbandoned,
		metric.WithDescription("Handlers that go on although their contexts have ended."))
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("create the executor's metrics: %w", err)
	}
	return &Metrics{duration: duration, abandoned: abandoned}, nil
}

func (m *Metrics) turnEnded(ctx context.Context, agentName string, o agent.Outcome, took time.Duration) {
	name := attribute.String(telemetry.AttrAgent, agentName)
	m.duration.Record(ctx, took.Seconds(), metric.WithAttributes(name,
		attribute.String(telemetry.AttrOutcome, o.String()), attribute.String(telemetry.AttrTaskState, o.State.String())))
	if o.Abandoned != nil {
		m.abandoned.Add(ctx, 1, metric.WithAttributes(name))
	}
}

// handlerGone counts the end of a handler that had been left behind.
func (m *Metrics) handlerGone(ctx context.Context, agentName string) {
	m.abandoned.Add(ctx, -1, metric.WithAttributes(attribute.String(telemetry.AttrAgent, agentName)))
}
