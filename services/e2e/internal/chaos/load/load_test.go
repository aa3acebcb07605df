package load_test

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/chaos/agents"
	"github.com/errandhq/errand/services/e2e/internal/chaos/journal"
	"github.com/errandhq/errand/services/e2e/internal/chaos/load"
	"github.com/errandhq/errand/services/e2e/internal/harness"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// nowhere are runs that nobody looks at.
type nowhere struct{}

func (nowhere) Write(journal.Run) error { return nil }

func run(t *testing.T, client *binding.Client, d, patience time.Duration) *journal.Journal {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	j := new(journal.Journal)
	load.Run(ctx, load.Config{
		Client: client, Agents: []string{agents.Worker, agents.Hybrid}, Hybrid: agents.Hybrid,
		Seed: 7, Senders: 50, Rate: 60, Patience: patience, Journal: j, Logger: slog.New(slog.DiscardHandler),
	})
	return j
}

func TestSendersDoAllThatSendersDo(t *testing.T) {
	t.Parallel()
	c := harness.Start(t, harness.Options{AgentsFile: agents.File(), Agents: agents.New("executor-0", 1, nowhere{})})
	j := run(t, c.Client, 5*time.Second, time.Minute)
	done := map[string]int{}
	for _, m := range j.Messages() {
		for _, a := range m.Attempts {
			done["send over "+a.Binding]++
			count(done, map[string]bool{
				"lost": a.Lost, "task": a.Task != nil, "reply": a.Reply != nil, "blocking": a.Blocking, "answer": m.TaskID != "",
			})
		}
		count(done, map[string]bool{"repeated": len(m.Attempts) > 1})
		last := m.Attempts[len(m.Attempts)-1]
		require.True(t, last.Lost || last.Task != nil || last.Reply != nil, "%v", m)
	}
	for _, s := range j.Streams() {
		for _, connection := range s.Connections {
			done["stream over "+connection.Binding]++
			count(done, map[string]bool{
				"cut": !connection.Ended && connection.Error == "", "resumed": connection.Resumed > 0, "opened by a message": connection.OfTurn,
			})
		}
	}
	require.Positive(t, resyncs(j), "no subscriber missed anything")
	count(done, map[string]bool{"read": len(j.Reads()) > 0, "cancel": len(j.Cancels()) > 0})
	for _, what := range []string{
		"send over jsonrpc", "send over rest", "send over grpc", "stream over jsonrpc", "stream over rest", "stream over grpc",
		"lost", "task", "reply", "blocking", "answer", "repeated", "cut", "resumed", "opened by a message", "read", "cancel",
	} {
		require.Positive(t, done[what], "%s: %v", what, done)
	}
}

// resyncs counts events that say that they stand for others.
func resyncs(j *journal.Journal) int {
	n := 0
	for _, s := range j.Streams() {
		for _, connection := range s.Connections {
			for _, e := range connection.Events {
				if e.Resync {
					n++
				}
			}
		}
	}
	return n
}

func count(done map[string]int, what map[string]bool) {
	for name, yes := range what {
		if yes {
			done[name]++
		}
	}
}

func TestMessagesThatNobodyAnswersAreTriedUntilPatienceEnds(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nobody := l.Addr().String()
	require.NoError(t, l.Close())
	client, err := binding.NewClient("http://"+nobody, nobody)
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	begun := time.Now()
	j := run(t, client, 500*time.Millisecond, time.Second)
	require.Less(t, time.Since(begun), 10*time.Second)
	require.NotEmpty(t, j.Messages())
	tries := 0
	for _, m := range j.Messages() {
		tries = max(tries, len(m.Attempts))
		for _, a := range m.Attempts {
			require.True(t, a.Lost, "%v", a)
			require.NotEmpty(t, a.Error)
		}
	}
	require.Greater(t, tries, 2)
}
