package conformance_test

import (
	"bytes"
	"context"
	"net/url"
	"runtime"
	"sync"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/pkg/testkit"
	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/harness"
)

var unavailable = refusal{"UNAVAILABLE", -32603, codes.Unavailable, 503}

// limited replaces limits of the agents file, or adds them.
func limited(lines string) func(*harness.Options) {
	return func(o *harness.Options) {
		o.AgentsFile = bytes.Replace(o.AgentsFile, []byte("limits:\n"), []byte("limits:\n"+lines), 1)
	}
}

// requireRetry wants the refusal of an overloaded server.
func (want refusal) requireRetry(t *testing.T, b binding.Binding, answer *binding.Answer) {
	t.Helper()
	want.check(t, b, answer)
	require.Positive(t, answer.Err.Retry().GetRetryDelay().AsDuration())
	if answer.Header != nil && b.Name() != "grpc" {
		require.NotEmpty(t, answer.Header.Get("Retry-After"))
	}
}

// A burst far over all bounds: everybody gets an answer or is told when to come
// again, soon, and afterwards the server is as it was before.
func TestABurstOverTheLimitsIsAnsweredOrRefused(t *testing.T) {
	t.Parallel()
	for engine := range clusters {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			cluster := start(t, engine, limited("  requests: 50\n  calls: 50\n  waits: 50\n  streams: 50\n"))
			all := callers(t, cluster, defaultAgent)
			all[0].send(say("echo"))
			before := runtime.NumGoroutine()
			const sends = 2000
			answers := make([]*binding.Answer, sends)
			var crowd sync.WaitGroup
			begun := time.Now()
			for i := range sends {
				crowd.Go(func() {
					answer, err := all[i%3].Call(t.Context(), binding.SendMessage, say("echo"))
					if err != nil {
						t.Error(err)
						return
					}
					answers[i] = answer
				})
			}
			crowd.Wait()
			require.Less(t, time.Since(begun), patience)
			accepted := 0
			for i, answer := range answers {
				require.NotNil(t, answer)
				if answer.Err != nil {
					unavailable.requireRetry(t, all[i%3].Binding, answer)
					continue
				}
				accepted++
				require.Equal(t, completed, state(answer.Result.(*a2apb.SendMessageResponse).GetTask()))
			}
			require.Positive(t, accepted)
			for _, c := range all {
				c.send(say("echo"))
			}
			cluster.Client.HTTP.CloseIdleConnections()
			require.Eventually(t, func() bool { return runtime.NumGoroutine() < before+2000 }, patience, 20*time.Millisecond)
		})
	}
}

// Sends that wait for a long time hold no database connection.
func TestWaitingSendsLeaveTheDatabaseToOthers(t *testing.T) {
	t.Parallel()
	cluster := start(t, harness.Postgres, func(o *harness.Options) {
		o.DatabaseURL = withQuery(t, testkit.Postgres(t), "pool_max_conns", "4")
	})
	const sends = 200
	gate, running := make(chan struct{}), make(chan struct{}, sends)
	text := script(t, func(context.Context, *agent.Task) error {
		running <- struct{}{}
		<-gate
		return nil
	})
	all := callers(t, cluster, probeAgent)
	var waits sync.WaitGroup
	for i := range sends {
		waits.Go(func() {
			answer, err := all[i%3].Call(t.Context(), binding.SendMessage, say(text))
			if err != nil || answer.Err != nil {
				t.Error(err, answer)
			}
		})
	}
	for range 64 { // as many as run at the same time; the others wait for a slot
		<-running
	}
	for range 20 {
		for _, c := range callers(t, cluster, defaultAgent) {
			begun := time.Now()
			c.get(c.send(say("echo")).GetId())
			require.Less(t, time.Since(begun), 5*time.Second)
		}
	}
	close(gate)
	waits.Wait()
}

func withQuery(t *testing.T, raw, key, value string) string {
	t.Helper()
	u, err := url.Parse(raw)
	require.NoError(t, err)
	q := u.Query()
	q.Set(key, value)
	u.RawQuery = q.Encode()
	return u.String()
}
