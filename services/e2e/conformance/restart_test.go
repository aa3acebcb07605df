package conformance_test

import (
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/services/e2e/internal/binding"
)

// eachRestarted runs before, restarts the cluster, and runs after; the cluster
// is the test's own.
func eachRestarted(t *testing.T, run func(t *testing.T, c *caller) (after func(c *caller))) {
	t.Helper()
	for engine := range clusters {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			cluster := start(t, engine)
			all := callers(t, cluster, defaultAgent)
			after := make([]func(*caller), len(all))
			for i, c := range all {
				after[i] = run(t, c)
			}
			cluster.Restart(t)
			for i, c := range callers(t, cluster, defaultAgent) {
				t.Run(c.Name(), func(t *testing.T) { after[i](c.in(t)) })
			}
		})
	}
}

// A restart loses nothing that was accepted: tasks, dedupe keys, direct
// Messages, page tokens, event ids, questions that wait (A2A §3.1.6, §3.3.1).
func TestARestartLosesNothing(t *testing.T) {
	t.Parallel()
	eachRestarted(t, func(t *testing.T, c *caller) func(*caller) {
		first, direct := say("hello there"), say("msg")
		done, reply := c.send(first), c.reply(direct)
		asked := c.send(say("ask"))
		queued := c.to(unservedAgent).send(say("wait", immediately))
		contextID, ids := c.many(5)
		two := int32(2)
		page := c.list(&a2apb.ListTasksRequest{ContextId: contextID, PageSize: &two})
		events := c.sendStream(say("chunks 3")).rest()
		running := c.send(say("sleep 1", immediately))

		return func(c *caller) {
			t := c.t
			c.requireEqual(done, c.get(done.GetId()))
			c.requireEqual(done, c.send(first))
			c.requireEqual(reply, c.reply(direct))

			rest := c.pages(&a2apb.ListTasksRequest{ContextId: contextID, PageSize: &two, PageToken: page.GetNextPageToken()})
			seen := idsOf(page.GetTasks())
			for _, p := range rest {
				seen = append(seen, idsOf(p)...)
			}
			require.ElementsMatch(t, ids, seen)

			if c.Name() != "grpc" {
				id := events[0].GetTask().GetId()
				again := c.subscribe(id, binding.With("Last-Event-ID", events[2].ID)).rest()
				require.Len(t, again, len(events)-3)
				c.requireGrowingIDs(append(events[:3:3], again...))
			}
			watch := c.subscribe(asked.GetId())
			c.requireEqual(asked, watch.task())
			require.Equal(t, completed, state(c.send(say("answer", toTask(asked.GetId())))))
			events := watch.rest()
			require.Equal(t, completed, events[len(events)-1].GetStatusUpdate().GetStatus().GetState())

			other := c.to(unservedAgent)
			waiting := other.subscribe(queued.GetId())
			require.Equal(t, submitted, state(waiting.task()))
			other.cancel(queued.GetId())
			require.Len(t, waiting.rest(), 1)

			require.Equal(t, completed, state(c.await(running.GetId(), completed)))
			require.Equal(t, completed, state(c.send(say("echo", inContext("c-"+uuid.NewString())))))
		}
	})
}

// A stream that is open when the server stops ends; it does not hang, and the
// task goes on after it.
func TestAStopEndsStreamsAndNoTask(t *testing.T) {
	t.Parallel()
	for engine := range clusters {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			cluster := start(t, engine)
			var streams []*stream
			var ids []string
			for _, c := range callers(t, cluster, defaultAgent) {
				s := c.sendStream(say("sleep 2"))
				ids = append(ids, s.task().GetId())
				streams = append(streams, s)
			}
			cluster.Restart(t)
			for _, s := range streams {
				for _, err := s.Next(); err == nil; _, err = s.Next() {
				}
			}
			c := callers(t, cluster, defaultAgent)[0]
			for _, id := range ids {
				c.await(id, completed)
			}
		})
	}
}
