package queue

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/errandhq/errand/pkg/natsconn"
	"github.com/errandhq/errand/pkg/telemetry"
)

// metrics count what passes through the work queue, by agent.
type metrics struct {
	published metric.Int64Counter
	delivered metric.Int64Counter
	poison    metric.Int64Counter
}

func newMetrics(meter metric.Meter) (metrics, error) {
	if meter == nil {
		meter = noop.Meter{}
	}
	published, err1 := meter.Int64Counter(telemetry.MetricWorkPublished,
		metric.WithDescription("Work messages published, by outcome."))
	delivered, err2 := meter.Int64Counter(telemetry.MetricWorkDelivered,
		metric.WithDescription("Work messages delivered to executors."))
	poison, err3 := meter.Int64Counter(telemetry.MetricWorkPoison,
		metric.WithDescription("Work messages removed because nobody can work on them, by reason."))
	if err := errors.Join(err1, err2, err3); err != nil {
		return metrics{}, fmt.Errorf("create the work queue's metrics: %w", err)
	}
	return metrics{published: published, delivered: delivered, poison: poison}, nil
}

func (m metrics) workPublished(ctx context.Context, agent string, ack natsconn.Ack) {
	outcome := "stored"
	switch {
	case ack.Err != nil:
		outcome = "failed"
	case ack.Duplicate:
		outcome = "duplicate"
	}
	m.published.Add(ctx, 1, metric.WithAttributes(
		attribute.String(telemetry.AttrAgent, agent), attribute.String(telemetry.AttrOutcome, outcome)))
}

func (m metrics) workDelivered(ctx context.Context, agent string, redelivered bool) {
	m.delivered.Add(ctx, 1, metric.WithAttributes(
		attribute.String(telemetry.AttrAgent, agent), attribute.Bool(telemetry.AttrRedelivered, redelivered)))
}

func (m metrics) workPoison(ctx context.Context, agent string, err error) {
	reason := "unreadable"
	switch {
	case errors.Is(err, errForeign):
		reason = "foreign"
	case errors.Is(err, errTooOften):
		reason = "delivered_too_often"
	}
	m.poison.Add(ctx, 1, metric.WithAttributes(
		attribute.String(telemetry.AttrAgent, agent), attribute.String(telemetry.AttrReason, reason)))
}
