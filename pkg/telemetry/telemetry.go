// Package telemetry is how Errand tells about itself: traces by OpenTelemetry,
// metrics for Prometheus, logs that carry the trace, and the server from which
// operators read health and metrics. Nothing is global; what Setup returns is
// passed on.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
)

// Scope is the instrumentation scope of what Errand itself records.
const Scope = "github.com/errandhq/errand"

// ErrProtocol means that the environment asks for another protocol than gRPC.
var ErrProtocol = errors.New("traces are exported over gRPC only: unset OTEL_EXPORTER_OTLP_PROTOCOL or set it to grpc")

// Telemetry is where a process sends its traces and metrics.
type Telemetry struct {
	Tracers    trace.TracerProvider
	Meters     metric.MeterProvider
	Propagator propagation.TextMapPropagator
	// Metrics serves the metrics in Prometheus' format.
	Metrics http.Handler

	shutdown []func(ctx context.Context) error
}

// Tracer records Errand's own spans.
func (t *Telemetry) Tracer() trace.Tracer { return t.Tracers.Tracer(Scope) }

// Meter records Errand's own metrics.
func (t *Telemetry) Meter() metric.Meter { return t.Meters.Meter(Scope) }

// Disabled records nothing, and passes trace context on. Tests use it.
func Disabled() *Telemetry {
	return &Telemetry{
		Tracers: tracenoop.NewTracerProvider(), Meters: metricnoop.NewMeterProvider(),
		Propagator: propagation.TraceContext{}, Metrics: http.NotFoundHandler(),
	}
}

// Setup builds a process's telemetry from OpenTelemetry's environment variables
// (OTEL_*). Without OTEL_EXPORTER_OTLP_ENDPOINT, or the one for traces, no
// traces are recorded; ids are still made and passed on, so that logs can be
// joined and a caller's trace isn't torn.
func Setup(ctx context.Context, service, version string) (*Telemetry, error) {
	res, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", service), attribute.String("service.version", version)),
		resource.WithFromEnv(),
	)
	if err != nil {
		return nil, fmt.Errorf("describe the process to OpenTelemetry: %w", err)
	}
	t := &Telemetry{Propagator: propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})}
	if err := t.setupMetrics(res); err != nil {
		return nil, err
	}
	if err := t.setupTraces(ctx, res); err != nil {
		return nil, errors.Join(err, t.Stop(ctx))
	}
	return t, nil
}

func (t *Telemetry) setupMetrics(res *resource.Resource) error {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	reader, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo())
	if err != nil {
		return fmt.Errorf("set up metrics: %w", err)
	}
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(res))
	t.Meters = meters
	t.Metrics = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	t.shutdown = append(t.shutdown, meters.Shutdown)
	return nil
}

func (t *Telemetry) setupTraces(ctx context.Context, res *resource.Resource) error {
	options := []sdktrace.TracerProviderOption{sdktrace.WithResource(res)}
	if exporting() {
		if protocol() != "grpc" {
			return ErrProtocol
		}
		exporter, err := otlptracegrpc.New(ctx)
		if err != nil {
			return fmt.Errorf("set up the export of traces: %w", err)
		}
		options = append(options, sdktrace.WithBatcher(exporter))
	} else {
		options = append(options, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.NeverSample())))
	}
	tracers := sdktrace.NewTracerProvider(options...)
	t.Tracers = tracers
	t.shutdown = append(t.shutdown, tracers.Shutdown)
	return nil
}

func exporting() bool {
	if os.Getenv("OTEL_SDK_DISABLED") == "true" || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

func protocol() string {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if value := os.Getenv(name); value != "" {
			return value
		}
	}
	return "grpc"
}

// Stop sends what has been recorded and not been sent yet, until ctx ends. It
// fits lifecycle.Group's AddCloser.
func (t *Telemetry) Stop(ctx context.Context) error {
	var errs []error
	for _, shutdown := range t.shutdown {
		errs = append(errs, shutdown(ctx))
	}
	t.shutdown = nil
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("send the last traces and metrics: %w", err)
	}
	return nil
}
