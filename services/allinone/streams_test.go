package allinone_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/events"
	"github.com/errandhq/errand/pkg/queue"
)

// All that JetStream holds may go at any moment, more than once: queued work,
// events, streams and consumers come back by themselves, and senders wait longer.
func TestLosingAllStreamsCostsTimeOnly(t *testing.T) {
	t.Parallel()
	cfg := configure(t, t.TempDir())
	cfg.NATS = "127.0.0.1:0"
	const senders = 150 // more than there are slots, so that most wait in the queue
	for i := range cfg.Agents.Agents {
		cfg.Agents.Agents[i].DirectConcurrency = senders // none is refused before it is queued
	}
	s := start(t, cfg)
	nc, err := nats.Connect(s.NATSURL())
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)

	answers := make([]string, senders)
	var waiting sync.WaitGroup
	for i := range senders {
		waiting.Go(func() {
			body := fmt.Sprintf(`{"message":{"messageId":"m%d","role":"ROLE_USER","parts":[{"text":"sleep 0.3"}]}}`, i)
			answers[i] = send(t, s, body)
		})
	}
	for range 4 {
		<-time.After(300 * time.Millisecond)
		for _, stream := range []string{queue.Stream, events.Stream} {
			if err := js.DeleteStream(t.Context(), stream); err != nil {
				require.ErrorIs(t, err, jetstream.ErrStreamNotFound)
			}
		}
	}
	waiting.Wait()
	for _, answer := range answers {
		require.Contains(t, answer, "TASK_STATE_COMPLETED")
	}
	require.Eventually(t, func() bool { return s.Ready() == nil }, patience, poll)
}
