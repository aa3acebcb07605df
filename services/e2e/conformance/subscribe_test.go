package conformance_test

import (
	"context"
	"fmt"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/harness"
)

// STREAM-SUB-001, STREAM-SUB-002, A2A §3.1.6.
func TestASubscriptionBeginsWithTheTaskAsItIs(t *testing.T) {
	t.Parallel()
	each(t, probeAgent, func(t *testing.T, c *caller) {
		hold := newHold(t)
		sent := c.send(say(hold.text, immediately))
		hold.awaitRun(t)
		watch := c.subscribe(sent.GetId())
		first := watch.event()
		c.requireEqual(c.get(sent.GetId()), first.GetTask())
		require.Len(t, first.GetTask().GetArtifacts(), 1)
		hold.release()
		events := append([]binding.Event{first}, watch.rest()...)
		c.requireGrowingIDs(events)
		c.requireSame(c.replay(events), c.get(sent.GetId()))
	})
}

// A2A §3.1.6: a task without a running agent can be subscribed to.
func TestAWaitingTaskCanBeSubscribedTo(t *testing.T) {
	t.Parallel()
	each(t, unservedAgent, func(t *testing.T, c *caller) {
		sent := c.send(say("wait", immediately))
		watch := c.subscribe(sent.GetId())
		require.Equal(t, submitted, state(watch.task()))
		c.cancel(sent.GetId())
		events := watch.rest()
		require.Len(t, events, 1)
		require.Equal(t, canceled, events[0].GetStatusUpdate().GetStatus().GetState())
	})
}

// STREAM-ORDER-002, STREAM-ORDER-003, STREAM-ORDER-004, A2A §3.5.2: all streams
// of a task, on any binding, get the same; closing one disturbs no other.
func TestAllStreamsOfATaskGetTheSame(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
		gate := make(chan struct{})
		text := script(t, func(ctx context.Context, task *agent.Task) error {
			<-gate
			chunks := task.Stream(&a2apb.Artifact{ArtifactId: "a"})
			for i := range 50 {
				if err := chunks.Send(ctx, agent.Text(fmt.Sprint(i))); err != nil {
					return err
				}
			}
			return task.Complete(ctx, agent.Text("done"))
		})
		all := callers(t, cluster, probeAgent)
		sent := all[0].send(say(text, immediately))
		all[0].await(sent.GetId(), working)
		var streams []*stream
		for _, c := range append(all, all...) {
			s := c.subscribe(sent.GetId())
			require.Equal(t, working, state(s.task()))
			streams = append(streams, s)
		}
		streams[0].Close()
		streams[5].Close()
		close(gate)
		first := streams[1].rest()
		require.Len(t, first, 51)
		for _, s := range streams[2:5] {
			same := s.rest()
			require.Len(t, same, len(first))
			for i := range first {
				s.c.requireEqual(first[i].StreamResponse, same[i].StreamResponse)
				if first[i].ID != "" && same[i].ID != "" {
					require.Equal(t, first[i].ID, same[i].ID)
				}
			}
		}
	})
}

// A2A §3.1.6: there is no moment at which a subscription misses the end.
func TestNoSubscriptionMissesTheEnd(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		delays := random(t).Perm(340) // a thousand on each database
		c.repeat(t, len(delays), func(t *testing.T, c *caller, i int) {
			t.Helper()
			sent := c.send(say("sleep 0.01", immediately))
			pause(t, delays[i]%20)
			s, refused, err := c.Open(within(t), binding.SubscribeToTask, &a2apb.SubscribeToTaskRequest{Id: sent.GetId()})
			require.NoError(t, err)
			if s == nil {
				unsupportedOperation.check(t, c.Binding, refused)
				return
			}
			defer s.Close()
			events := (&stream{Stream: s, c: c}).rest()
			c.requireGrowingIDs(events)
			c.requireSame(c.replay(events), c.get(sent.GetId()))
		})
	})
}

// A2A §3.5.2: a cut loses nothing; the snapshot is the recovery.
func TestACutStreamGoesOnFromTheSnapshot(t *testing.T) {
	t.Parallel()
	each(t, probeAgent, func(t *testing.T, c *caller) {
		step := make(chan struct{})
		text := script(t, func(ctx context.Context, task *agent.Task) error {
			chunks := task.Stream(&a2apb.Artifact{ArtifactId: "a"})
			for i := range 20 {
				if i >= 5 {
					<-step
				}
				if err := chunks.Send(ctx, agent.Text(fmt.Sprintf("%d,", i))); err != nil {
					return err
				}
			}
			return nil
		})
		s := c.sendStream(say(text))
		id := s.task().GetId()
		for range 6 { // WORKING and five chunks
			s.event()
		}
		s.Close()
		for range 7 {
			step <- struct{}{}
		}
		again := c.subscribe(id)
		close(step)
		events := again.rest()
		told, stored := c.replay(events), c.get(id)
		c.requireSame(told, stored)
		require.Len(t, stored.GetArtifacts()[0].GetParts(), 20)
	})
}

// A2A §3.5.2: a task does not depend on any connection.
func TestATaskGoesOnWhenItsSenderIsGone(t *testing.T) {
	t.Parallel()
	each(t, probeAgent, func(t *testing.T, c *caller) {
		streamed, waited := newHold(t), newHold(t)
		s := c.sendStream(say(streamed.text))
		id := s.task().GetId()
		streamed.awaitRun(t)
		other := c.subscribe(id)
		s.Close()

		ctx, cancel := context.WithCancel(t.Context())
		in := say(waited.text, inContext("c-"+waited.text))
		gone := make(chan error, 1)
		go func() {
			_, err := c.Call(ctx, binding.SendMessage, in)
			gone <- err
		}()
		waited.awaitRun(t)
		cancel()
		require.Error(t, <-gone)

		streamed.release()
		waited.release()
		events := other.rest()
		require.Equal(t, completed, state(c.replay(events)))
		left := c.list(&a2apb.ListTasksRequest{ContextId: in.GetMessage().GetContextId()}).GetTasks()
		require.Len(t, left, 1)
		for _, id := range []string{id, left[0].GetId()} {
			require.Len(t, c.await(id, completed).GetArtifacts(), 2)
		}
	})
}

// The last write does not run on the sender's connection either.
func TestATaskCompletesWhenItsSenderLeavesWithTheLastChunk(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		c.repeat(t, 200, func(t *testing.T, c *caller, _ int) {
			t.Helper()
			s := c.sendStream(say("chunks 3"))
			events := s.until(func(e binding.Event) bool { return e.GetArtifactUpdate().GetLastChunk() })
			s.Close()
			got := c.await(events[0].GetTask().GetId(), completed)
			require.Len(t, got.GetArtifacts()[0].GetParts(), 3)
		})
	})
}
