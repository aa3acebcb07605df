package launch_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/services/e2e/internal/harness"
	"github.com/errandhq/errand/services/e2e/internal/launch"
)

// A cluster that is restarted without end serves meanwhile: of each kind, whoever
// is asked to end leaves others that are ready.
func TestOneProcessOfEachServiceIsRestartedAtATimeInTurn(t *testing.T) {
	t.Parallel()
	c := harness.Launch(t, testConfig(t))
	onFailure(t, c)
	s := newSender(t, c.HTTP(), c.GRPC())
	before := pids(c)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := map[launch.Kind][]string{}
	done := make(chan error, 1)
	var enough sync.Once
	twice := make(chan struct{})
	go func() {
		done <- c.Restart(ctx, 100*time.Millisecond, func(p *launch.Process) {
			requireOthersReady(t, c, p)
			ended[p.Kind()] = append(ended[p.Kind()], p.Name())
			if len(ended[launch.TaskStore]) > 4 {
				enough.Do(func() { close(twice) })
			}
		})
	}()
	for restarting := true; restarting; {
		s.requireAllComplete(t)
		select {
		case <-twice:
			restarting = false
		case err := <-done:
			require.NoError(t, err)
		default:
		}
	}
	cancel()
	require.NoError(t, <-done)
	for _, kind := range []launch.Kind{launch.Gateway, launch.TaskStore, launch.Notifier, launch.Executor} {
		first, second := string(kind)+"-0", string(kind)+"-1"
		require.Equal(t, []string{first, second, first, second}, ended[kind][:4])
		require.NotEqual(t, before[first], c.Process(first).PID())
		require.NotEqual(t, before[second], c.Process(second).PID())
	}
	require.Equal(t, before["postgres"], c.Process("postgres").PID())
	require.Equal(t, before["nats"], c.Process("nats").PID())
}

func pids(c *launch.Cluster) map[string]int {
	found := map[string]int{}
	for _, p := range c.Processes() {
		found[p.Name()] = p.PID()
	}
	return found
}

// requireOthersReady waits for the others of a kind, which a busy machine delays; one
// that is away would not come before the leaving one has gone.
func requireOthersReady(t *testing.T, c *launch.Cluster, leaving *launch.Process) {
	t.Helper()
	for _, p := range c.Processes() {
		if p == leaving || !strings.HasPrefix(p.Name(), string(leaving.Kind())+"-") {
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if err := p.Ready(ctx); err != nil {
			t.Errorf("while %s leaves: %v", leaving.Name(), err)
		}
		cancel()
	}
}
