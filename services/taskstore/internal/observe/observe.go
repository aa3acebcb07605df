// Package observe makes an engine tell about itself: a span and a duration for
// each operation of a request. The engines know nothing of it.
package observe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/errandhq/errand/pkg/telemetry"
	"github.com/errandhq/errand/services/taskstore/internal/batch"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// Engine is an engine whose reads and writes are observed; background work,
// which has metrics of its own, is not.
type Engine struct {
	engine.Engine

	tracer      trace.Tracer
	duration    metric.Float64Histogram
	batch       metric.Int64Histogram
	deadLetters *deadLetters
}

// New observes an engine.
func New(e engine.Engine, tracer trace.Tracer, meter metric.Meter, logger *slog.Logger) (*Engine, error) {
	duration, err := meter.Float64Histogram(telemetry.MetricStoreDuration,
		metric.WithUnit("s"), metric.WithDescription("Duration of operations on the task store's database"),
		metric.WithExplicitBucketBoundaries(.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10))
	if err != nil {
		return nil, fmt.Errorf("make %s: %w", telemetry.MetricStoreDuration, err)
	}
	size, err := meter.Int64Histogram(telemetry.MetricStoreBatch,
		metric.WithUnit("{change}"), metric.WithDescription("Changes that shared a transaction"),
		metric.WithExplicitBucketBoundaries(1, 2, 4, 8, 16, 32, 64, 128))
	if err != nil {
		return nil, fmt.Errorf("make %s: %w", telemetry.MetricStoreBatch, err)
	}
	letters, err := newDeadLetters(logger, meter)
	if err != nil {
		return nil, err
	}
	return &Engine{Engine: e, tracer: tracer, duration: duration, batch: size, deadLetters: letters}, nil
}

// Update implements engine.Writer. Its span is a child of the first caller's and
// linked to those of the others that share the transaction.
func (e *Engine) Update(
	ctx context.Context, sel engine.Selection, decide func(*engine.Loaded) (*engine.Changes, error),
) error {
	callers := batch.Callers(ctx)
	var links []trace.Link
	for _, caller := range callers[min(1, len(callers)):] {
		if span := trace.SpanContextFromContext(caller); span.IsValid() {
			links = append(links, trace.Link{SpanContext: span})
		}
	}
	e.batch.Record(ctx, int64(len(callers)))
	var changes *engine.Changes
	_, err := observed(ctx, e, "update", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, e.Engine.Update(ctx, sel, func(l *engine.Loaded) (*engine.Changes, error) {
			var err error
			changes, err = decide(l)
			return changes, err
		})
	}, trace.WithLinks(links...), trace.WithAttributes(attribute.Int(telemetry.AttrMessageCount, len(callers))))
	if err == nil {
		e.deadLetters.committed(ctx, changes)
	}
	return err
}

// RenewLeases implements engine.Writer.
func (e *Engine) RenewLeases(
	ctx context.Context, holder string, refs []engine.LeaseRef, until time.Time,
) ([]engine.Renewal, error) {
	return observed(ctx, e, "renew_leases", func(ctx context.Context) ([]engine.Renewal, error) {
		return e.Engine.RenewLeases(ctx, holder, refs, until)
	}, trace.WithAttributes(attribute.Int(telemetry.AttrMessageCount, len(refs))))
}

// observed runs one operation within a span.
func observed[T any](
	ctx context.Context, e *Engine, operation string, run func(context.Context) (T, error), options ...trace.SpanStartOption,
) (T, error) {
	ctx, span := e.tracer.Start(ctx, "taskstore."+operation, options...)
	defer span.End()
	began := time.Now()
	result, err := run(ctx)
	attributes := []attribute.KeyValue{attribute.String(telemetry.AttrOperation, operation)}
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		attributes = append(attributes, attribute.String(telemetry.AttrErrorType, errorType(err)))
		span.RecordError(err)
		span.SetStatus(codes.Error, "")
	}
	e.duration.Record(ctx, time.Since(began).Seconds(), metric.WithAttributes(attributes...))
	return result, err
}

// errorType is one of a few words, fit for a metric.
func errorType(err error) string {
	switch {
	case errors.Is(err, engine.ErrUnavailable):
		return "unavailable"
	case errors.Is(err, engine.ErrInDoubt):
		return "in_doubt"
	case errors.Is(err, engine.ErrConflict):
		return "conflict"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "canceled"
	default:
		return "other"
	}
}
