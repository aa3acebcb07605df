package conformance_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/services/e2e/internal/binding"
)

// steps are what the agent of a story does, one event each, the last one the end.
var steps = []func(ctx context.Context, t *agent.Task, list *agent.ArtifactStream) error{
	func(ctx context.Context, t *agent.Task, _ *agent.ArtifactStream) error {
		return t.Progress(ctx, agent.Text("begun"))
	},
	func(ctx context.Context, t *agent.Task, _ *agent.ArtifactStream) error {
		return t.Emit(ctx, artifact("draft", "first"))
	},
	func(ctx context.Context, _ *agent.Task, list *agent.ArtifactStream) error {
		return list.Send(ctx, agent.Text("one"))
	},
	func(ctx context.Context, _ *agent.Task, list *agent.ArtifactStream) error {
		return list.Send(ctx, agent.Text("two"))
	},
	func(ctx context.Context, t *agent.Task, _ *agent.ArtifactStream) error {
		return t.Emit(ctx, artifact("draft", "second"))
	},
	func(ctx context.Context, _ *agent.Task, list *agent.ArtifactStream) error {
		return list.Send(ctx, agent.Text("three"))
	},
	func(ctx context.Context, t *agent.Task, _ *agent.ArtifactStream) error {
		return t.Complete(ctx, agent.Text("done"))
	},
}

// story is a script that does the steps, and waits before one of them for the gate.
func story(t *testing.T, stop int) (text string, gate chan struct{}) {
	t.Helper()
	gate = make(chan struct{})
	text = script(t, func(ctx context.Context, task *agent.Task) error {
		list := task.Stream(&a2apb.Artifact{ArtifactId: "list"})
		for i, step := range steps {
			if i == stop {
				if err := task.Flush(ctx); err != nil {
					return err
				}
				<-gate
			}
			if err := step(ctx, task, list); err != nil {
				return err
			}
		}
		return nil
	})
	return text, gate
}

// untold is how many events come before the first step: the task, and that it works.
const untold = 2

// Wherever a stream is cut, another node goes on, and its reader comes to know
// the task that the store has.
func TestAStreamCutAtAnyEventGoesOnAtAnotherNode(t *testing.T) {
	t.Parallel()
	first, second := nodes(t)
	for stop := range steps {
		for i := range callers(t, first, probeAgent) {
			t.Run(fmt.Sprintf("%s before step %d", callers(t, first, probeAgent)[i].Name(), stop), func(t *testing.T) {
				t.Parallel()
				here, there := callers(t, first, probeAgent)[i], callers(t, second, probeAgent)[i]
				text, gate := story(t, stop)
				cut := here.sendStream(say(text))
				var seen []binding.Event
				for range untold + stop {
					seen = append(seen, cut.event())
				}
				cut.Close()
				id := seen[0].GetTask().GetId()
				anew := there.subscribe(id)
				require.NotNil(t, anew.task())
				resumed := resumption(there, id, seen)
				close(gate)

				rest := resumed.rest()
				stored := there.await(id, completed)
				all := append(append([]binding.Event{}, seen...), rest...)
				there.requireGrowingIDs(all)
				there.requireSame(there.replay(all), stored)
				require.Len(t, anew.rest(), len(steps)-stop, "after the snapshot")
			})
		}
	}
}

// resumption is the rest of a stream; gRPC knows no ids of events and starts with
// the task.
func resumption(c *caller, id string, seen []binding.Event) *stream {
	c.t.Helper()
	if c.Name() == "grpc" {
		return c.subscribe(id)
	}
	return c.subscribe(id, binding.With("Last-Event-ID", seen[len(seen)-1].ID))
}

// A reader that comes back when all is over is told the rest of any part.
func TestAFinishedStreamCanBeResumedAtAnyEventAndNode(t *testing.T) {
	t.Parallel()
	first, second := nodes(t)
	text, _ := story(t, len(steps))
	here := callers(t, first, probeAgent)[0]
	id := here.send(say(text)).GetId()
	stored := here.get(id)
	for _, c := range both(t, first, second) {
		if c.Name() == "grpc" {
			continue // it has no streams of finished tasks
		}
		whole := c.subscribe(id, binding.With("Last-Event-ID", "0")).rest()
		require.Len(t, whole, untold+len(steps))
		c.requireSame(c.replay(whole), stored)
		for i, e := range whole {
			require.Equal(t, strconv.Itoa(i+1), e.ID)
			rest := c.subscribe(id, binding.With("Last-Event-ID", e.ID)).rest()
			require.Len(t, rest, len(whole)-i-1)
			c.requireSame(c.replay(append(append([]binding.Event{}, whole[:i+1]...), rest...)), stored)
		}
	}
}
