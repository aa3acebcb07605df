package allinone_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/telemetry"
	"github.com/errandhq/errand/pkg/testkit"
	"github.com/errandhq/errand/services/agents/scripted"
	"github.com/errandhq/errand/services/allinone"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	patience = 15 * time.Second
	poll     = 5 * time.Millisecond
)

func configure(t *testing.T, dir string) allinone.Config {
	t.Helper()
	agents, err := config.Parse(scripted.AgentsFile())
	require.NoError(t, err)
	return allinone.Config{
		Logger: testkit.Logger(t), Telemetry: telemetry.Disabled(), DataDir: dir,
		HTTP: "127.0.0.1:0", GRPC: "127.0.0.1:0",
		Agents: agents, Handlers: []agent.Agent{scripted.New()},
	}
}

func start(t *testing.T, cfg allinone.Config) *allinone.Service {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := allinone.New(ctx, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { stop(t, s) })
	require.NoError(t, s.Start(ctx))
	return s
}

func stop(t *testing.T, s *allinone.Service) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	require.NoError(t, s.Stop(ctx))
}

func send(t *testing.T, s *allinone.Service, body string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.HTTPAddr()+"/message:send", bytes.NewBufferString(body))
	require.NoError(t, err)
	request.Header.Set("A2A-Version", "1.0")
	request.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, answer.Body.Close()) }()
	read, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode, string(read))
	return string(read)
}

const echo = `{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"echo"}]}}`

func TestATaskSurvivesARestart(t *testing.T) {
	t.Parallel()
	cfg := configure(t, t.TempDir())
	first := start(t, cfg)
	before := send(t, first, echo)
	require.Contains(t, before, "TASK_STATE_COMPLETED")
	stop(t, first)
	require.JSONEq(t, before, send(t, start(t, cfg), echo), "the same message is the same task")
}

func TestASecondProcessOnTheDataIsRefused(t *testing.T) {
	t.Parallel()
	cfg := configure(t, t.TempDir())
	start(t, cfg)
	_, err := allinone.New(t.Context(), cfg)
	require.ErrorIs(t, err, allinone.ErrDataInUse)
}

func TestItRunsOnPostgresAndANATSOfOnesOwn(t *testing.T) {
	t.Parallel()
	cfg := configure(t, t.TempDir())
	cfg.DatabaseURL = testkit.Postgres(t)
	owner := configure(t, t.TempDir())
	owner.NATS = "127.0.0.1:0"
	cfg.NATSURL = start(t, owner).NATSURL()
	require.Contains(t, send(t, start(t, cfg), echo), "TASK_STATE_COMPLETED")
}

func TestOneSendIsOneTraceAcrossAllParts(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	cfg := configure(t, t.TempDir())
	cfg.DatabaseURL = testkit.Postgres(t)
	cfg.Telemetry = &telemetry.Telemetry{
		Tracers: provider, Meters: metricnoop.NewMeterProvider(), Propagator: propagation.TraceContext{}, Metrics: http.NotFoundHandler(),
	}
	s := start(t, cfg)
	send(t, s, echo)

	parts := map[string]string{
		"the gateway": "POST", "the store": "TaskStoreService/AcceptMessage", "its SQL": "tasks",
		"the claim": "TaskStoreService/ClaimTasks", "the handler": "handle", "its writes": "TaskStoreService/WriteEvents",
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		names := traceOf(spans, "AcceptMessage")
		for part, name := range parts {
			require.Contains(c, names, name, part+" is in the trace of the send")
		}
	}, patience, 10*time.Millisecond)
}

// traceOf joins the names of all spans of the trace in which one has a name.
func traceOf(spans *tracetest.InMemoryExporter, name string) string {
	traces := map[trace.TraceID]string{}
	for _, span := range spans.GetSpans() {
		traces[span.SpanContext.TraceID()] += span.Name + "\n"
	}
	for _, names := range traces {
		if strings.Contains(names, name) {
			return names
		}
	}
	return ""
}
