package launch_test

import (
	"context"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/services/e2e/internal/harness"
	"github.com/errandhq/errand/services/e2e/internal/launch"
)

func TestWhatEndsByItselfIsStartedAgainAndWhatWasAskedToEndIsNot(t *testing.T) {
	t.Parallel()
	c := harness.Launch(t, testConfig(t))
	onFailure(t, c)
	s := newSender(t, c.HTTP(), c.GRPC())
	before := pids(c)

	ctx, cancel := context.WithCancel(t.Context())
	var reviving sync.WaitGroup
	revived := make(chan string, len(before))
	reviving.Go(func() { c.Revive(ctx, func(p *launch.Process) { revived <- p.Name() }) })
	defer reviving.Wait()
	defer cancel()
	require.NoError(t, c.Process("notifier-1").Terminate(within(t)))
	killed := []string{"gateway-0", "taskstore-1", "nats", "postgres"}
	for _, name := range killed {
		require.NoError(t, syscall.Kill(before[name], syscall.SIGKILL))
	}
	for _, name := range killed {
		require.Eventually(t, func() bool {
			p := c.Process(name)
			once, done := context.WithTimeout(t.Context(), time.Second)
			defer done()
			return p.PID() != before[name] && p.Ready(once) == nil
		}, patience, 20*time.Millisecond, name)
	}
	s.requireAllComplete(t)
	require.Equal(t, before["notifier-1"], c.Process("notifier-1").PID())
	cancel()
	reviving.Wait()
	close(revived)
	for name := range revived {
		require.Contains(t, killed, name)
	}
}
