package natsconn_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/errandhq/errand/pkg/natsconn"
	"github.com/errandhq/errand/pkg/natsconn/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

func server(t *testing.T) *embedded.Server {
	t.Helper()
	return embedded.New(embedded.Config{DataDir: t.TempDir(), Logger: quiet})
}

func running(t *testing.T, srv *embedded.Server) *embedded.Server {
	t.Helper()
	require.NoError(t, srv.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, srv.Stop(context.Background())) })
	return srv
}

func connect(ctx context.Context, t *testing.T, srv nats.InProcessConnProvider) *nats.Conn {
	t.Helper()
	nc, err := natsconn.Connect(ctx, natsconn.Config{InProcess: srv, Name: "test", Logger: quiet})
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

func TestConnectComesUpWithoutAServerAndFindsItLater(t *testing.T) {
	t.Parallel()
	srv := server(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	nc := connect(gone, t, srv)
	require.ErrorIs(t, natsconn.Ready(nc), natsconn.ErrDisconnected)
	require.Error(t, nc.Publish("subject", nil), "nothing piles up while there is no server")

	received := make(chan string, 1)
	_, err := nc.Subscribe("subject", func(msg *nats.Msg) { received <- string(msg.Data) })
	require.NoError(t, err)

	running(t, srv)
	require.Eventually(t, func() bool { return natsconn.Ready(nc) == nil }, 30*time.Second, time.Millisecond)
	require.NoError(t, nc.Flush())
	require.NoError(t, nc.Publish("subject", []byte("hello")))
	require.Equal(t, "hello", <-received, "subscriptions made while disconnected are renewed")
}

func TestConnectRefusesAMalformedURL(t *testing.T) {
	t.Parallel()
	_, err := natsconn.Connect(t.Context(), natsconn.Config{URL: "nats://[::1", Name: "test", Logger: quiet})
	require.Error(t, err)
}

func TestSubjectTakesPlainNamesOnly(t *testing.T) {
	t.Parallel()
	subject, err := natsconn.Subject("errand.work", "writer-2", "0198c5a2-aaaa_B")
	require.NoError(t, err)
	require.Equal(t, "errand.work.writer-2.0198c5a2-aaaa_B", subject)

	for _, name := range []string{
		"", ".", "a.b", "*", ">", "a b", "a\r\nPUB x 0", "a\x00", "ünï", "a/b", "$SYS", strings.Repeat("a", 300),
	} {
		_, err := natsconn.Subject("errand.events", "default", name)
		require.ErrorIs(t, err, natsconn.ErrBadToken, "%q", name)
	}
}

func FuzzSubjectIsOneSubject(f *testing.F) {
	f.Add("default", "0198c5a2-7cf1-7000-8000-000000000000")
	f.Add("a.b", ">")
	f.Add("", "\r\n")
	f.Fuzz(func(t *testing.T, tenant, task string) {
		subject, err := natsconn.Subject("p", tenant, task)
		if err != nil {
			return
		}
		require.Equal(t, []string{"p", tenant, task}, strings.Split(subject, "."))
		require.NotContains(t, subject, "*")
		require.NotContains(t, subject, ">")
		require.Equal(t, subject, strings.Join(strings.Fields(subject), ""))
	})
}

func TestTraceContextTravelsInHeaders(t *testing.T) {
	t.Parallel()
	const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	ctx := natsconn.TraceContext(t.Context(), traceparent)
	msg := nats.NewMsg("subject")
	msg.Header = nil
	natsconn.InjectTrace(ctx, msg)
	require.Equal(t, traceparent, msg.Header.Get("traceparent"))

	span := trace.SpanContextFromContext(natsconn.ExtractTrace(t.Context(), msg.Header))
	require.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", span.TraceID().String())
	require.True(t, span.IsRemote())

	for _, bad := range []string{"", "nonsense", "00-0-0-0"} {
		span := trace.SpanContextFromContext(natsconn.TraceContext(t.Context(), bad))
		require.False(t, span.IsValid(), "%q", bad)
	}
}
