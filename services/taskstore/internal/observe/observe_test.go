package observe_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/errandhq/errand/pkg/telemetry"
	"github.com/errandhq/errand/services/taskstore/internal/batch"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/errandhq/errand/services/taskstore/internal/observe"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

type stub struct {
	engine.Engine
	err error
	// The updates' first try is lost and made again.
	retry bool
}

func (s stub) Update(_ context.Context, _ engine.Selection, decide func(*engine.Loaded) (*engine.Changes, error)) error {
	for tries := 0; tries == 0 || s.retry && tries == 1; tries++ {
		if _, err := decide(&engine.Loaded{}); err != nil {
			return err
		}
	}
	return s.err
}

func (s stub) ReadDedupe(context.Context, engine.DedupeKey) (engine.Dedupe, error) {
	return engine.Dedupe{}, s.err
}

func nothing(*engine.Loaded) (*engine.Changes, error) { return &engine.Changes{}, nil }

// bundle records what an observed engine tells.
type bundle struct {
	*observe.Engine
	tracer trace.Tracer
	spans  *tracetest.SpanRecorder
	meters *sdkmetric.ManualReader
	log    bytes.Buffer
}

func (b *bundle) logger() *slog.Logger { return slog.New(slog.NewJSONHandler(&b.log, nil)) }

func observed(t *testing.T, s stub) *bundle {
	t.Helper()
	b := &bundle{spans: tracetest.NewSpanRecorder(), meters: sdkmetric.NewManualReader()}
	b.tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(b.spans)).Tracer("test")
	var err error
	b.Engine, err = observe.New(s, b.tracer, sdkmetric.NewMeterProvider(sdkmetric.WithReader(b.meters)).Meter("test"), b.logger())
	require.NoError(t, err)
	return b
}

// metric reads the attributes of a histogram's only point.
func (b *bundle) metric(t *testing.T, name string) attribute.Set {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, b.meters.Collect(t.Context(), &all))
	for _, m := range all.ScopeMetrics[0].Metrics {
		if m.Name == name {
			data, ok := m.Data.(metricdata.Histogram[float64])
			require.True(t, ok)
			require.Len(t, data.DataPoints, 1)
			return data.DataPoints[0].Attributes
		}
	}
	require.Fail(t, "no metric", name)
	return attribute.Set{}
}

type item struct{}

func (item) Keys() []any { return nil }

func (item) Size() int { return 1 }

func TestTheSpanOfATransactionIsLinkedToAllThatShareIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := observed(t, stub{})
		release := make(chan struct{})
		writes := batch.New(batch.Options{Parallel: 1, Items: 10, Bytes: 10, Waiting: 10, WaitingBytes: 100, Timeout: time.Minute},
			func(ctx context.Context, _ []item) error {
				<-release
				return b.Update(ctx, engine.Selection{}, nothing)
			})
		callers := make([]trace.Span, 4)
		for i := range callers {
			ctx, span := b.tracer.Start(t.Context(), "caller")
			callers[i] = span
			go writes.Do(ctx, item{})
			synctest.Wait()
		}
		close(release)
		writes.Close()
		ended := b.spans.Ended()
		require.Len(t, ended, 2)
		shared := ended[1]
		require.Equal(t, "taskstore.update", shared.Name())
		require.Equal(t, callers[1].SpanContext().SpanID(), shared.Parent().SpanID())
		require.Len(t, shared.Links(), 2)
		require.Equal(t, callers[2].SpanContext(), shared.Links()[0].SpanContext)
		require.Contains(t, shared.Attributes(), attribute.Int(telemetry.AttrMessageCount, 3))
	})
}

func TestAFailureIsCountedByItsKind(t *testing.T) {
	t.Parallel()
	for kind, err := range map[string]error{
		"unavailable": engine.ErrUnavailable, "in_doubt": engine.ErrInDoubt, "conflict": engine.ErrConflict,
		"timeout": context.DeadlineExceeded, "canceled": context.Canceled, "other": errors.New("broken"),
	} {
		b := observed(t, stub{err: err})
		require.Equal(t, err, b.Update(t.Context(), engine.Selection{}, nothing))
		attributes := b.metric(t, telemetry.MetricStoreDuration)
		value, ok := attributes.Value(telemetry.AttrErrorType)
		require.True(t, ok)
		require.Equal(t, kind, value.AsString())
	}
}

func TestWhatIsNotThereIsNoFailure(t *testing.T) {
	t.Parallel()
	b := observed(t, stub{err: engine.ErrNotFound})
	_, err := b.ReadDedupe(t.Context(), engine.DedupeKey{})
	require.ErrorIs(t, err, engine.ErrNotFound)
	attributes := b.metric(t, telemetry.MetricStoreDuration)
	require.False(t, attributes.HasValue(telemetry.AttrErrorType))
	operation, _ := attributes.Value(telemetry.AttrOperation)
	require.Equal(t, "read_dedupe", operation.AsString())
}
