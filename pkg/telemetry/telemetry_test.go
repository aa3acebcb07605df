package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/lifecycle/lifecycletest"
	"github.com/errandhq/errand/pkg/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func remote(t *testing.T) context.Context {
	t.Helper()
	return propagation.TraceContext{}.Extract(t.Context(), propagation.MapCarrier{"traceparent": traceparent})
}

func setup(t *testing.T) *telemetry.Telemetry {
	t.Helper()
	tel, err := telemetry.Setup(t.Context(), "errand-test", "v1.2.3")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tel.Stop(context.Background())) })
	return tel
}

func TestWithoutAnEndpointNothingIsRecordedAndTheTraceIsPassedOn(t *testing.T) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"} {
		t.Setenv(name, "")
	}
	tel := setup(t)
	ctx, span := tel.Tracer().Start(t.Context(), "root")
	require.False(t, span.IsRecording())
	require.True(t, span.SpanContext().IsValid(), "logs can still be joined")
	span.End()

	carrier := propagation.MapCarrier{}
	tel.Propagator.Inject(ctx, carrier)
	require.Contains(t, carrier["traceparent"], span.SpanContext().TraceID().String())

	_, span = tel.Tracer().Start(remote(t), "child")
	defer span.End()
	require.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", span.SpanContext().TraceID().String())
	require.True(t, span.SpanContext().IsSampled(), "the caller's decision holds")
}

type collector struct {
	collectorv1.UnimplementedTraceServiceServer
	received chan *collectorv1.ExportTraceServiceRequest
}

func (c *collector) Export(
	_ context.Context, req *collectorv1.ExportTraceServiceRequest,
) (*collectorv1.ExportTraceServiceResponse, error) {
	c.received <- req
	return &collectorv1.ExportTraceServiceResponse{}, nil
}

func TestWithAnEndpointSpansAreExportedWithTheServicesName(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	c := &collector{received: make(chan *collectorv1.ExportTraceServiceRequest, 10)}
	collectorv1.RegisterTraceServiceServer(server, c)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+listener.Addr().String())
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")

	tel, err := telemetry.Setup(t.Context(), "errand-test", "v1.2.3")
	require.NoError(t, err)
	_, span := tel.Tracer().Start(t.Context(), "work")
	span.End()
	require.NoError(t, tel.Stop(t.Context()))

	spans := (<-c.received).GetResourceSpans()[0]
	attributes := map[string]string{}
	for _, a := range spans.GetResource().GetAttributes() {
		attributes[a.GetKey()] = a.GetValue().GetStringValue()
	}
	require.Equal(t, "errand-test", attributes["service.name"])
	require.Equal(t, "v1.2.3", attributes["service.version"])
	require.Equal(t, "test", attributes["deployment.environment"])
	require.Equal(t, "work", spans.GetScopeSpans()[0].GetSpans()[0].GetName())
}

func TestAnotherProtocolThanGRPCIsRefusedAtStart(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	_, err := telemetry.Setup(t.Context(), "errand-test", "")
	require.ErrorIs(t, err, telemetry.ErrProtocol)
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	setup(t)
}

func TestMetricsAreServedForPrometheus(t *testing.T) {
	t.Parallel()
	tel := setup(t)
	counter, err := tel.Meter().Int64Counter(telemetry.MetricWorkPublished)
	require.NoError(t, err)
	counter.Add(t.Context(), 3)
	recorder := httptest.NewRecorder()
	tel.Metrics.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, recorder.Code)
	require.Contains(t, recorder.Body.String(), "errand_work_published_total 3")
	require.Contains(t, recorder.Body.String(), "go_goroutines")
	require.Contains(t, recorder.Body.String(), `service_name="errand-test"`)
}

func TestDisabledTelemetryPassesTheTraceOn(t *testing.T) {
	t.Parallel()
	tel := telemetry.Disabled()
	ctx, span := tel.Tracer().Start(remote(t), "child")
	defer span.End()
	carrier := propagation.MapCarrier{}
	tel.Propagator.Inject(ctx, carrier)
	require.Equal(t, traceparent, carrier["traceparent"])
	require.NoError(t, tel.Stop(t.Context()))
}

func TestLogLinesCarryTheTrace(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	logger := telemetry.NewLogger(&out, slog.LevelInfo).With(telemetry.LogAgent, "writer")
	logger.InfoContext(remote(t), "claimed", telemetry.LogTaskID, "t")
	logger.DebugContext(remote(t), "left out")
	var line map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &line))
	require.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", line["trace_id"])
	require.Equal(t, "00f067aa0ba902b7", line["span_id"])
	require.Equal(t, "writer", line["agent"])

	out.Reset()
	logger.WithGroup("g").Info("no trace")
	require.NotContains(t, out.String(), "trace_id")
	require.False(t, trace.SpanContextFromContext(t.Context()).IsValid())
}

func newOps(ready func() error) *telemetry.Ops {
	return telemetry.NewOps(telemetry.OpsConfig{
		Addr: "127.0.0.1:0", Ready: ready, Metrics: http.NotFoundHandler(), Logger: quiet,
	})
}

func TestOpsKeepsTheServiceContract(t *testing.T) {
	t.Parallel()
	lifecycletest.Stress(t, func(*testing.T) lifecycle.Service { return newOps(func() error { return nil }) })
}

func TestOpsTellsHealthAndReadiness(t *testing.T) {
	t.Parallel()
	var failure atomic.Pointer[error]
	ops := newOps(func() error {
		if err := failure.Load(); err != nil {
			return *err
		}
		return nil
	})
	require.NoError(t, ops.Start(t.Context()))
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(path string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+ops.Addr()+path, nil)
		require.NoError(t, err)
		resp, err := client.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(body)
	}
	expect := func(path string, status int, text string) {
		code, body := get(path)
		require.Equal(t, status, code, path)
		require.Contains(t, body, text, path)
	}
	expect("/healthz", http.StatusOK, "ok")
	expect("/readyz", http.StatusOK, "ready")
	away := errors.New("taskstore: the database is away")
	failure.Store(&away)
	expect("/readyz", http.StatusServiceUnavailable, "the database is away")
	expect("/healthz", http.StatusOK, "ok")
	expect("/elsewhere", http.StatusNotFound, "")
	require.NoError(t, ops.Stop(t.Context()))
}

func TestOpsSaysWhenItsAddressIsTaken(t *testing.T) {
	t.Parallel()
	first := newOps(func() error { return nil })
	require.NoError(t, first.Start(t.Context()))
	second := telemetry.NewOps(telemetry.OpsConfig{Addr: first.Addr(), Metrics: http.NotFoundHandler(), Logger: quiet})
	require.ErrorContains(t, second.Start(t.Context()), "listen for health and metrics")
	require.NoError(t, second.Stop(t.Context()))
	require.NoError(t, first.Stop(t.Context()))
}
