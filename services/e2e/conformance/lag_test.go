package conformance_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/harness"
)

// A subscriber that does not read holds nobody up, and what it reads later has
// no hole.
func TestASlowReaderHasNoHole(t *testing.T) {
	t.Parallel()
	each(t, probeAgent, func(t *testing.T, c *caller) {
		gate, block := make(chan struct{}), strings.Repeat("x", 4000)
		text := script(t, func(ctx context.Context, task *agent.Task) error {
			<-gate
			chunks := task.Stream(&a2apb.Artifact{ArtifactId: "a"})
			for range 2000 {
				if err := chunks.Send(ctx, agent.Text(block)); err != nil {
					return err
				}
			}
			return nil
		})
		sent := c.send(say(text, immediately))
		c.await(sent.GetId(), working)
		slow, quick := c.subscribe(sent.GetId()), c.subscribe(sent.GetId())
		require.NotNil(t, slow.task())
		close(gate)
		stored := c.get(c.replay(quick.rest()).GetId())
		require.Equal(t, completed, state(stored))
		require.Len(t, stored.GetArtifacts()[0].GetParts(), 2000)

		// It gets the rest, by a snapshot where it lagged too far, or is cut.
		var events []binding.Event
		for e, err := slow.Next(); err == nil; e, err = slow.Next() {
			events = append(events, e)
		}
		told := c.replay(append([]binding.Event{taskEvent(sent)}, events...))
		if len(told.GetArtifacts()) > 0 {
			n := len(told.GetArtifacts()[0].GetParts())
			require.True(t, proto.Equal(
				&a2apb.Artifact{Parts: stored.GetArtifacts()[0].GetParts()[:n]},
				&a2apb.Artifact{Parts: told.GetArtifacts()[0].GetParts()}), "a hole within %d chunks", n)
		}
	})
}

// One that lags further than the server remembers for it gets a snapshot in the
// place of what it missed, and then goes on.
func TestAReaderThatLagsGetsASnapshot(t *testing.T) {
	t.Parallel()
	const chunks = 1600 // of 4 kB: more than sockets and server hold
	for engine := range clusters {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			cluster := start(t, engine, func(o *harness.Options) { // no reader is cut off for being slow
				o.AgentsFile = bytes.ReplaceAll(o.AgentsFile, []byte("write: 1s"), []byte("write: 1m"))
			})
			narrow, err := binding.NewNarrowClient(cluster.Client.URL, cluster.GRPC)
			require.NoError(t, err)
			defer func() { require.NoError(t, narrow.Close()) }()
			for i, quick := range callers(t, cluster, probeAgent) {
				text, gate := burst(t, chunks)
				sent := quick.send(say(text, immediately))
				slow := *quick
				slow.Binding = narrow.Bindings(probeAgent)[i]
				s := slow.subscribe(sent.GetId())
				events := []binding.Event{s.event()}
				close(gate)
				stored := quick.await(sent.GetId(), completed)
				events = append(events, s.rest()...)
				require.Less(t, len(events), chunks, "nothing was missed: the buffers in between hold all events")
				quick.requireGrowingIDs(events)
				requireNamedSnapshots(t, quick.Name(), events)
				quick.requireSame(quick.replay(events), stored)
			}
		})
	}
}

// requireNamedSnapshots: over HTTP, a task that stands for missed events says so.
func requireNamedSnapshots(t *testing.T, over string, events []binding.Event) {
	t.Helper()
	for i, e := range events {
		name := ""
		if i > 0 && e.GetTask() != nil && over != "grpc" {
			name = "resync"
		}
		require.Equal(t, name, e.Name, "event %d", i)
	}
}

// burst is a script that emits n chunks of 4 kB when the gate opens.
func burst(t *testing.T, n int) (text string, gate chan struct{}) {
	t.Helper()
	gate = make(chan struct{})
	text = script(t, func(ctx context.Context, task *agent.Task) error {
		chunks := task.Stream(&a2apb.Artifact{ArtifactId: "a"})
		<-gate
		for i := range n {
			if err := chunks.Send(ctx, agent.Text(fmt.Sprintf("%04000d", i))); err != nil {
				return err
			}
		}
		return nil
	})
	return text, gate
}

func taskEvent(task *a2apb.Task) binding.Event {
	return binding.Event{StreamResponse: &a2apb.StreamResponse{Payload: &a2apb.StreamResponse_Task{Task: task}}}
}
