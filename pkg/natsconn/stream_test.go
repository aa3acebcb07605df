package natsconn_test

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/natsconn"
)

func spec() natsconn.StreamSpec {
	return natsconn.StreamSpec{
		Name:        "TEST",
		Description: "A stream of a test.",
		Subjects:    []string{"test.>"},
		Retention:   jetstream.WorkQueuePolicy,
		Discard:     jetstream.DiscardNew,
		MaxBytes:    1 << 20,
		MaxMsgs:     1000,
		MaxMsgSize:  10_000,
		MaxAge:      2 * time.Hour,
		Duplicates:  time.Minute,
		Revision:    1,
	}
}

func newJetStream(t *testing.T) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(connect(t.Context(), t, running(t, server(t))))
	require.NoError(t, err)
	return js
}

func TestEnsureStreamCreatesAndThenUpdatesOnlyWhatIsOurs(t *testing.T) {
	t.Parallel()
	js := newJetStream(t)
	ctx := t.Context()
	require.NoError(t, natsconn.EnsureStream(ctx, js, spec()))
	require.NoError(t, natsconn.EnsureStream(ctx, js, spec()), "again")

	stream, err := js.Stream(ctx, "TEST")
	require.NoError(t, err)
	byOperator := stream.CachedInfo().Config
	byOperator.MaxConsumers = -1
	byOperator.Metadata = map[string]string{"owner": "operations"}
	_, err = js.UpdateStream(ctx, byOperator)
	require.NoError(t, err)

	larger := spec()
	larger.MaxBytes = 2 << 20
	larger.Subjects = []string{"test.>", "more.>"}
	require.NoError(t, natsconn.EnsureStream(ctx, js, larger))
	stream, err = js.Stream(ctx, "TEST")
	require.NoError(t, err)
	cfg := stream.CachedInfo().Config
	require.Equal(t, int64(2<<20), cfg.MaxBytes)
	require.Equal(t, larger.Subjects, cfg.Subjects)
	require.Equal(t, "operations", cfg.Metadata["owner"])
}

// settings is what a stream holds of its spec.
func settings(t *testing.T, js jetstream.JetStream) jetstream.StreamConfig {
	t.Helper()
	stream, err := js.Stream(t.Context(), "TEST")
	require.NoError(t, err)
	return stream.CachedInfo().Config
}

func requireOneMessage(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	require.Eventually(t, func() bool {
		stream, err := js.Stream(t.Context(), "TEST")
		return err == nil && stream.CachedInfo().State.Msgs == 1
	}, 10*time.Second, time.Millisecond)
}

func TestEverySettingOfAnOlderStreamIsBroughtUpToDateInPlace(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*jetstream.StreamConfig){
		"description":          func(c *jetstream.StreamConfig) { c.Description = "old" },
		"subjects":             func(c *jetstream.StreamConfig) { c.Subjects = []string{"test.a", "old.>"} },
		"discard":              func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld },
		"bytes, fewer":         func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 10 },
		"bytes, more":          func(c *jetstream.StreamConfig) { c.MaxBytes = -1 },
		"messages":             func(c *jetstream.StreamConfig) { c.MaxMsgs = 3 },
		"messages per subject": func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 2; c.Discard = jetstream.DiscardOld },
		"message size":         func(c *jetstream.StreamConfig) { c.MaxMsgSize = 10 },
		"age":                  func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
		"duplicates":           func(c *jetstream.StreamConfig) { c.Duplicates = time.Second },
		"no acknowledgements":  func(c *jetstream.StreamConfig) { c.NoAck = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			js := newJetStream(t)
			require.NoError(t, natsconn.EnsureStream(t.Context(), js, spec()))
			want := settings(t, js)
			old := want
			change(&old)
			require.NotEqual(t, want, old)
			require.NoError(t, js.DeleteStream(t.Context(), "TEST"))
			_, err := js.CreateStream(t.Context(), old)
			require.NoError(t, err)
			require.NoError(t, js.Conn().Publish("test.a", []byte("kept")))
			requireOneMessage(t, js)

			require.NoError(t, natsconn.EnsureStream(t.Context(), js, spec()))
			require.Equal(t, want, settings(t, js))
			requireOneMessage(t, js) // it is the same stream
			_, err = js.Publish(t.Context(), "test.b", []byte("taken"))
			require.NoError(t, err)
		})
	}
}

func TestAStreamThatCannotBeChangedIsMadeAnew(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*jetstream.StreamConfig){
		"retention": func(c *jetstream.StreamConfig) { c.Retention = jetstream.LimitsPolicy },
		"storage":   func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage },
		"sealed":    func(c *jetstream.StreamConfig) { c.Sealed = true },
		"no purge":  func(c *jetstream.StreamConfig) { c.DenyPurge = true },
		"no delete": func(c *jetstream.StreamConfig) { c.DenyDelete = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			js := newJetStream(t)
			require.NoError(t, natsconn.EnsureStream(t.Context(), js, spec()))
			want := settings(t, js)
			require.NoError(t, js.DeleteStream(t.Context(), "TEST"))
			old := want
			change(&old)
			sealed := old.Sealed
			old.Sealed = false // only an update can seal
			_, err := js.CreateStream(t.Context(), old)
			require.NoError(t, err)
			if sealed {
				old.Sealed = true
				_, err = js.UpdateStream(t.Context(), old)
				require.NoError(t, err)
			}
			log := &bytes.Buffer{}
			s := spec()
			s.Logger = slog.New(slog.NewTextHandler(log, nil))
			require.NoError(t, natsconn.EnsureStream(t.Context(), js, s))
			require.Equal(t, want, settings(t, js))
			require.Contains(t, log.String(), "TEST")
		})
	}
}

// Two versions run side by side while one takes the other's place.
func TestAnOlderProcessLeavesTheSettingsOfANewerOneAlone(t *testing.T) {
	t.Parallel()
	js := newJetStream(t)
	newer, older := spec(), spec()
	newer.Revision, newer.MaxBytes = 2, 7<<20
	older.Revision, older.Retention = 1, jetstream.LimitsPolicy
	require.NoError(t, natsconn.EnsureStream(t.Context(), js, older))
	require.NoError(t, natsconn.EnsureStream(t.Context(), js, newer))
	want := settings(t, js)
	require.NoError(t, natsconn.EnsureStream(t.Context(), js, older))
	require.Equal(t, want, settings(t, js))
}

func TestServersThatAreNotThereKeepNoOtherSettingBack(t *testing.T) {
	t.Parallel()
	js := newJetStream(t)
	require.NoError(t, natsconn.EnsureStream(t.Context(), js, spec()))
	wide := spec()
	wide.Replicas, wide.MaxBytes = 3, 5<<20
	require.ErrorContains(t, natsconn.EnsureStream(t.Context(), js, wide), "3 servers")
	require.Equal(t, int64(5<<20), settings(t, js).MaxBytes)
	require.Equal(t, 1, settings(t, js).Replicas)
}

func TestEnsureStreamIsSafeFromManyProcesses(t *testing.T) {
	t.Parallel()
	js := newJetStream(t)
	results := make(chan error)
	for i := range 8 {
		go func() {
			s := spec()
			s.MaxBytes += int64(i)
			s.Revision = i
			s.Retention = []jetstream.RetentionPolicy{jetstream.WorkQueuePolicy, jetstream.LimitsPolicy}[i%2]
			results <- natsconn.EnsureStream(t.Context(), js, s)
		}()
	}
	for range 8 {
		// A stream that another one is making anew may not be there at the moment.
		if err := <-results; err != nil {
			require.ErrorIs(t, err, jetstream.ErrStreamNotFound)
		}
	}
	require.NoError(t, natsconn.EnsureStream(t.Context(), js, spec()))
}
