package launch_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/harness"
	"github.com/errandhq/errand/services/e2e/internal/launch"
)

// One cluster is hurt in every way, one after the other: what it went through
// before must not matter.
func TestAClusterServesThroughWhatIsDoneToIt(t *testing.T) { //nolint:tparallel // its parts follow each other
	t.Parallel()
	cfg := testConfig(t)
	cfg.Links = true
	c := harness.Launch(t, cfg)
	onFailure(t, c)
	s := newSender(t, c.HTTP(), c.GRPC())

	t.Run("all bindings lead through the front", func(t *testing.T) {
		s.requireAllComplete(t)
		card, err := binding.Do(within(t), s.HTTP, http.MethodGet, s.URL+"/.well-known/agent-card.json", http.Header{}, nil)
		require.NoError(t, err)
		require.Contains(t, string(card.Body), "http://"+c.HTTP()+"/rpc")
		require.Contains(t, string(card.Body), c.GRPC())
	})
	for _, name := range []string{"gateway-0", "taskstore-1", "notifier-0", "executor-1", "postgres", "nats"} {
		t.Run("kill "+name, func(t *testing.T) { killed(t, c, s, c.Process(name)) })
		t.Run("terminate "+name, func(t *testing.T) { terminated(t, c.Process(name)) })
		t.Run("pause "+name, func(t *testing.T) { paused(t, c.Process(name)) })
	}
	t.Run("all complete after that", func(t *testing.T) { s.requireAllComplete(t) })
	t.Run("cut taskstore-0", func(t *testing.T) {
		c.Cut("taskstore-0")
		s.requireAllComplete(t)
		c.Heal("taskstore-0")
		s.requireAllComplete(t)
	})
	t.Run("wipe NATS", func(t *testing.T) {
		require.NoError(t, c.WipeNATS(within(t)))
		s.requireAllComplete(t)
	})
}

func killed(t *testing.T, c *launch.Cluster, s *sender, p *launch.Process) {
	t.Helper()
	first, ended := p.PID(), p.Ended()
	require.NoError(t, p.Kill(within(t)))
	<-ended
	require.Error(t, p.Ready(within(t)), "it does not come back by itself")
	if p.Kind() != launch.Postgres && p.Kind() != launch.NATS {
		s.requireAllComplete(t)
	}
	require.NoError(t, p.Start(within(t)))
	require.Error(t, p.Start(within(t)), "it runs already")
	require.NoError(t, p.Ready(within(t)))
	require.NotEqual(t, first, p.PID())
	for _, other := range c.Processes() {
		require.NoError(t, other.Ready(within(t)))
	}
	s.requireAllComplete(t)
}

func terminated(t *testing.T, p *launch.Process) {
	t.Helper()
	require.NoError(t, p.Terminate(within(t)))
	<-p.Ended()
	require.NoError(t, p.Terminate(within(t)), "nothing to do")
	require.NoError(t, p.Start(within(t)))
	require.NoError(t, p.Ready(within(t)))
}

func paused(t *testing.T, p *launch.Process) {
	t.Helper()
	require.NoError(t, p.Pause(within(t)))
	moment, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	require.Error(t, p.Ready(moment))
	require.NoError(t, p.Continue(within(t)))
	require.NoError(t, p.Ready(within(t)))
}

func TestAFolderBelongsToOneClusterAtATime(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.Gateways, cfg.TaskStores, cfg.Notifiers, cfg.Executors = 1, 1, 1, 1
	c := harness.Launch(t, cfg)
	_, err := launch.Start(within(t), cfg)
	require.ErrorIs(t, err, launch.ErrRunning)
	s := newSender(t, c.HTTP(), c.GRPC())
	s.requireAllComplete(t)
}

func TestAStartThatFailsLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.ExecutorProgram = "/bin/false"
	_, err := launch.Start(within(t), cfg)
	require.ErrorContains(t, err, "executor-0 ended before it was ready")
	require.Empty(t, commandsWith(t, cfg.Dir))
	require.ErrorIs(t, launch.Down(within(t), cfg.Dir), launch.ErrNotRunning)
}

func TestSettingsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*launch.Config){
		"no gateway":           func(cfg *launch.Config) { cfg.Gateways = 0 },
		"links to given ones":  func(cfg *launch.Config) { cfg.Links, cfg.NATSURL = true, "nats://127.0.0.1:4222" },
		"an agents file's end": func(cfg *launch.Config) { cfg.AgentsFile += ".gone" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t)
			change(&cfg)
			_, err := launch.Start(within(t), cfg)
			require.Error(t, err)
			require.NoDirExists(t, cfg.Dir)
		})
	}
}
