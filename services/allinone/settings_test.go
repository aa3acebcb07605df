package allinone_test

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/services/allinone"
	"github.com/errandhq/errand/services/taskstore"
)

func echoOf(id string) string {
	return fmt.Sprintf(`{"message":{"messageId":%q,"role":"ROLE_USER","parts":[{"text":"echo"}]}}`, id)
}

// No setting is one that only a new installation can have.
func TestARestartWithAnySettingGoesOn(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*allinone.Config){
		"defaults":                  func(*allinone.Config) {},
		"a smaller work queue":      func(c *allinone.Config) { c.Streams.WorkMaxBytes = 1 << 20 },
		"a larger work queue":       func(c *allinone.Config) { c.Streams.WorkMaxBytes = 100 << 30 },
		"fewer events":              func(c *allinone.Config) { c.Streams.EventsMaxBytes = 1 << 20 },
		"more events":               func(c *allinone.Config) { c.Streams.EventsMaxBytes = 100 << 30 },
		"replicas":                  func(c *allinone.Config) { c.Streams.Replicas = 1 },
		"replicas without a server": func(c *allinone.Config) { c.Streams.Replicas = 3 },
		"everything": func(c *allinone.Config) {
			c.Streams = taskstore.Streams{WorkMaxBytes: 2 << 20, EventsMaxBytes: 3 << 20, Replicas: 1}
			c.TaskStore, c.NATS, c.PublicURL, c.PublicGRPC = "127.0.0.1:0", "127.0.0.1:0", "http://errand.test", "errand.test:443"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := configure(t, t.TempDir())
			for i, settings := range []func(*allinone.Config){func(*allinone.Config) {}, change, func(*allinone.Config) {}} {
				with := cfg
				settings(&with)
				s := start(t, with)
				require.Contains(t, send(t, s, echoOf(fmt.Sprint("m", i))), "TASK_STATE_COMPLETED")
				require.Eventually(t, func() bool { return s.Ready() == nil }, patience, poll)
				stop(t, s)
			}
		})
	}
}

func TestSettingsReachTheStreams(t *testing.T) {
	t.Parallel()
	cfg := configure(t, t.TempDir())
	cfg.NATS = "127.0.0.1:0"
	stop(t, start(t, cfg))
	cfg.Streams = taskstore.Streams{WorkMaxBytes: 2 << 20, EventsMaxBytes: 3 << 20}
	s := start(t, cfg)
	nc, err := nats.Connect(s.NATSURL())
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	for name, bytes := range map[string]int64{"ERRAND_WORK": 2 << 20, "ERRAND_EVENTS": 3 << 20} {
		require.Eventually(t, func() bool {
			stream, err := js.Stream(t.Context(), name)
			return err == nil && stream.CachedInfo().Config.MaxBytes == bytes
		}, patience, poll, name)
	}
}

func TestWrongSettingsOfStreamsAreRefused(t *testing.T) {
	t.Parallel()
	for _, streams := range []taskstore.Streams{
		{WorkMaxBytes: -1}, {WorkMaxBytes: 1024}, {EventsMaxBytes: -1}, {EventsMaxBytes: 1024}, {Replicas: -1}, {Replicas: 6},
	} {
		cfg := configure(t, t.TempDir())
		cfg.Streams = streams
		_, err := allinone.New(t.Context(), cfg)
		require.ErrorContains(t, err, "want", streams)
	}
}
