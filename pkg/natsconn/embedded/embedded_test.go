package embedded_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/lifecycle/lifecycletest"
	"github.com/errandhq/errand/pkg/natsconn"
	"github.com/errandhq/errand/pkg/natsconn/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

func start(t *testing.T, cfg embedded.Config) *embedded.Server {
	t.Helper()
	cfg.Logger = quiet
	srv := embedded.New(cfg)
	require.NoError(t, srv.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, srv.Stop(context.Background())) })
	return srv
}

func connect(t *testing.T, srv nats.InProcessConnProvider) *nats.Conn {
	t.Helper()
	nc, err := natsconn.Connect(t.Context(), natsconn.Config{InProcess: srv, Name: "test", Logger: quiet})
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

func TestServerKeepsTheServiceContract(t *testing.T) {
	t.Parallel()
	lifecycletest.Stress(t, func(t *testing.T) lifecycle.Service {
		return embedded.New(embedded.Config{DataDir: t.TempDir(), Logger: quiet})
	})
}

func TestServerOpensNoPortUnlessAsked(t *testing.T) {
	t.Parallel()
	srv := start(t, embedded.Config{DataDir: t.TempDir()})
	require.Empty(t, srv.URL())
	nc := connect(t, srv)
	require.NoError(t, natsconn.Ready(nc))
	require.Equal(t, int64(8<<20), nc.MaxPayload())
}

func TestServerListensWhenAsked(t *testing.T) {
	t.Parallel()
	srv := start(t, embedded.Config{DataDir: t.TempDir(), Listen: "127.0.0.1:0"})
	nc, err := natsconn.Connect(t.Context(), natsconn.Config{URL: srv.URL(), Name: "test", Logger: quiet})
	require.NoError(t, err)
	defer nc.Close()
	require.NoError(t, natsconn.Ready(nc))
}

func TestServerRefusesAnAddressThatIsNone(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"nonsense", "127.0.0.1:http", "127.0.0.1:70000"} {
		srv := embedded.New(embedded.Config{DataDir: t.TempDir(), Listen: address, Logger: quiet})
		require.Error(t, srv.Start(t.Context()), address)
		require.Error(t, srv.Ready(), address)
		require.NoError(t, srv.Stop(t.Context()), address)
	}
}

func TestServerFindsItsStreamsAfterARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	first := embedded.New(embedded.Config{DataDir: dir, Logger: quiet})
	require.NoError(t, first.Start(ctx))
	js, err := jetstream.New(connect(t, first))
	require.NoError(t, err)
	_, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: "KEPT", Subjects: []string{"kept"}})
	require.NoError(t, err)
	_, err = js.Publish(ctx, "kept", []byte("still here"))
	require.NoError(t, err)
	require.NoError(t, first.Stop(ctx))

	js, err = jetstream.New(connect(t, start(t, embedded.Config{DataDir: dir})))
	require.NoError(t, err)
	stream, err := js.Stream(ctx, "KEPT")
	require.NoError(t, err)
	msg, err := stream.GetLastMsgForSubject(ctx, "kept")
	require.NoError(t, err)
	require.Equal(t, "still here", string(msg.Data))
}

func TestServerBoundsJetStream(t *testing.T) {
	t.Parallel()
	srv := start(t, embedded.Config{DataDir: t.TempDir(), MaxDisk: 1 << 20, MaxMemory: 1 << 20})
	js, err := jetstream.New(connect(t, srv))
	require.NoError(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "BIG", Subjects: []string{"big"}, MaxBytes: 2 << 20})
	require.Error(t, err)
}
