package conformance_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/harness"
)

// nodes are two that share a database and a NATS server.
func nodes(t *testing.T) (first, second *harness.Cluster) {
	t.Helper()
	first = start(t, harness.Postgres)
	second = start(t, harness.Postgres, func(o *harness.Options) { o.Beside = first })
	return first, second
}

// both are the six ways to the probe agent over two nodes.
func both(t *testing.T, first, second *harness.Cluster) []*caller {
	t.Helper()
	return append(callers(t, first, probeAgent), callers(t, second, probeAgent)...)
}

func TestNodesAreOneCluster(t *testing.T) {
	t.Parallel()
	first, second := nodes(t)

	t.Run("a retry at another node gets the same task", func(t *testing.T) {
		t.Parallel()
		var runs atomic.Int32
		text := script(t, func(context.Context, *agent.Task) error {
			runs.Add(1)
			return nil
		})
		ids := together(t, both(t, first, second), 60, say(text))
		for _, id := range ids {
			require.Equal(t, ids[0], id)
		}
		require.Equal(t, int32(1), runs.Load())
	})

	t.Run("what one answers another has", func(t *testing.T) {
		t.Parallel()
		here, there := callers(t, first, defaultAgent)[0], callers(t, second, defaultAgent)[1]
		for range 30 {
			done := here.send(say("chunks 5"))
			require.Len(t, done.GetArtifacts()[0].GetParts(), 5)
			there.requireEqual(done, there.get(done.GetId()))
		}
	})

	t.Run("streams at all nodes get the same", func(t *testing.T) {
		t.Parallel()
		hold := newHold(t)
		all := both(t, first, second)
		sent := all[0].send(say(hold.text, immediately))
		hold.awaitRun(t)
		var streams []*stream
		for _, c := range all {
			s := c.subscribe(sent.GetId())
			require.Equal(t, working, state(s.task()))
			streams = append(streams, s)
		}
		streams[0].Close()
		hold.release()
		want := streams[1].rest()
		require.Len(t, want, 2)
		for _, s := range streams[2:] {
			got := s.rest()
			require.Len(t, got, len(want))
			for i := range want {
				s.c.requireEqual(want[i].StreamResponse, got[i].StreamResponse)
			}
		}
	})

	t.Run("a cancel at any node reaches the handler", func(t *testing.T) {
		t.Parallel()
		for _, c := range []*caller{callers(t, first, probeAgent)[0], callers(t, second, probeAgent)[0]} {
			ended := make(chan error, 1)
			running := make(chan struct{})
			text := script(t, func(ctx context.Context, _ *agent.Task) error {
				close(running)
				<-ctx.Done()
				ended <- context.Cause(ctx)
				return nil
			})
			sent := callers(t, first, probeAgent)[1].send(say(text, immediately))
			<-running
			c.cancel(sent.GetId())
			require.ErrorIs(t, <-ended, agent.ErrCanceled)
		}
	})
}

// A node that stops hands its streams' readers to another, which goes on by
// Last-Event-ID, and its tasks to the other's executor.
func TestAnotherNodeGoesOn(t *testing.T) {
	t.Parallel()
	first, second := nodes(t)
	for _, i := range []int{0, 1} {
		gone := start(t, harness.Postgres, func(o *harness.Options) { o.Beside = first })
		hold := newHold(t)
		c := callers(t, gone, probeAgent)[i]
		s := c.sendStream(say(hold.text))
		seen := s.until(func(e binding.Event) bool { return e.GetArtifactUpdate() != nil })
		hold.awaitRun(t)
		gone.Stop(t)
		for _, err := s.Next(); err == nil; _, err = s.Next() {
		}
		hold.release()

		again := callers(t, second, probeAgent)[i]
		id := seen[0].GetTask().GetId()
		rest := again.subscribe(id, binding.With("Last-Event-ID", seen[len(seen)-1].ID)).rest()
		again.requireGrowingIDs(append(append([]binding.Event{}, seen...), rest...))
		require.Equal(t, completed, state(again.get(id)))
		again.requireSame(again.replay(append(append([]binding.Event{}, seen...), rest...)), again.get(id))
	}
}
