package natsconn_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/natsconn"
)

func consumerSpec() natsconn.ConsumerSpec {
	return natsconn.ConsumerSpec{Stream: "TEST", Revision: 1, ConsumerConfig: jetstream.ConsumerConfig{
		Durable: "mine", FilterSubject: "test.a.b", AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Minute,
		MaxDeliver: -1, MaxAckPending: 100, InactiveThreshold: time.Hour,
	}}
}

// What an older version, or anybody else, left behind must not keep work back.
func TestAConsumerTakesThePlaceOfWhatIsThere(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*jetstream.ConsumerConfig){
		"the same":       func(*jetstream.ConsumerConfig) {},
		"ack wait":       func(c *jetstream.ConsumerConfig) { c.AckWait = time.Second },
		"deliveries":     func(c *jetstream.ConsumerConfig) { c.MaxDeliver = 1 },
		"unacknowledged": func(c *jetstream.ConsumerConfig) { c.MaxAckPending = 1 },
		"idle time":      func(c *jetstream.ConsumerConfig) { c.InactiveThreshold = time.Minute },
		"filter":         func(c *jetstream.ConsumerConfig) { c.FilterSubject = "test.c" },
		"filters": func(c *jetstream.ConsumerConfig) {
			c.FilterSubject, c.FilterSubjects = "", []string{"test.c", "test.d"}
		},
		"headers only":        func(c *jetstream.ConsumerConfig) { c.HeadersOnly = true },
		"steps":               func(c *jetstream.ConsumerConfig) { c.BackOff = []time.Duration{time.Second} },
		"waiting requests":    func(c *jetstream.ConsumerConfig) { c.MaxWaiting, c.AckWait = 1, time.Second },
		"storage":             func(c *jetstream.ConsumerConfig) { c.MemoryStorage, c.AckWait = true, time.Second },
		"another name, wider": func(c *jetstream.ConsumerConfig) { c.Durable, c.FilterSubject = "wide", "test.>" },
		"another name, some":  func(c *jetstream.ConsumerConfig) { c.Durable, c.FilterSubject = "wide", "test.*.b" },
		"another name, all":   func(c *jetstream.ConsumerConfig) { c.Durable, c.FilterSubject = "wide", "" },
		"another name, among": func(c *jetstream.ConsumerConfig) {
			c.Durable, c.FilterSubject, c.FilterSubjects = "wide", "", []string{"test.c", "test.a.*"}
		},
		"another name, the same": func(c *jetstream.ConsumerConfig) { c.Durable = "twin" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			js := newJetStream(t)
			require.NoError(t, natsconn.EnsureStream(t.Context(), js, spec()))
			old := consumerSpec().ConsumerConfig
			change(&old)
			_, err := js.CreateConsumer(t.Context(), "TEST", old)
			require.NoError(t, err)
			_, err = js.CreateConsumer(t.Context(), "TEST", jetstream.ConsumerConfig{Durable: "other", FilterSubject: "test.x", AckPolicy: jetstream.AckExplicitPolicy})
			others := 1
			if err != nil {
				others = 0 // the wide one is in its way
			}
			consumer, err := natsconn.EnsureConsumer(t.Context(), js, consumerSpec())
			require.NoError(t, err)
			_, err = js.Publish(t.Context(), "test.a.b", []byte("work"))
			require.NoError(t, err)
			msg, err := consumer.Next()
			require.NoError(t, err)
			require.Equal(t, []byte("work"), msg.Data())

			have := consumer.CachedInfo().Config
			want := consumerSpec()
			require.Equal(t, want.FilterSubject, have.FilterSubject)
			require.Equal(t, want.AckWait, have.AckWait)
			require.Equal(t, want.MaxDeliver, have.MaxDeliver)
			require.Equal(t, want.MaxAckPending, have.MaxAckPending)
			require.Equal(t, want.InactiveThreshold, have.InactiveThreshold)
			stream, err := js.Stream(t.Context(), "TEST")
			require.NoError(t, err)
			require.Equal(t, 1+others, stream.CachedInfo().State.Consumers, "consumers of other subjects stay")
		})
	}
}

func TestAnOlderProcessLeavesTheConsumerOfANewerOneAlone(t *testing.T) {
	t.Parallel()
	js := newJetStream(t)
	require.NoError(t, natsconn.EnsureStream(t.Context(), js, spec()))
	newer := consumerSpec()
	newer.Revision, newer.AckWait = 2, time.Second
	_, err := natsconn.EnsureConsumer(t.Context(), js, newer)
	require.NoError(t, err)
	consumer, err := natsconn.EnsureConsumer(t.Context(), js, consumerSpec())
	require.NoError(t, err)
	require.Equal(t, time.Second, consumer.CachedInfo().Config.AckWait)
}

func TestAConsumerOfAStreamThatIsNotThereIsNotMade(t *testing.T) {
	t.Parallel()
	_, err := natsconn.EnsureConsumer(t.Context(), newJetStream(t), consumerSpec())
	require.ErrorIs(t, err, jetstream.ErrStreamNotFound)
}
