package conformance_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/harness"
)

// edge is a gateway and a notifier in processes of their own, which tests may
// kill. The cluster has the rest, and another gateway.
type edge struct {
	*harness.Edge
	cluster *harness.Cluster
}

// eachEdge runs test on each database, with a cluster of the test's own.
func eachEdge(t *testing.T, test func(t *testing.T, e *edge)) {
	t.Helper()
	for engine := range clusters {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			cluster := start(t, engine)
			test(t, &edge{edgePrograms().Start(t, cluster.Backend(t)), cluster})
		})
	}
}

// callers go through the gateway that can be killed.
func (e *edge) callers(t *testing.T) []*caller {
	t.Helper()
	var all []*caller
	for _, b := range e.Client.Bindings(probeAgent) {
		all = append(all, &caller{Binding: b, t: t, cluster: e.cluster, agent: probeAgent})
	}
	return all
}

// stepper is a script that emits one chunk for each step, and completes when
// there are no more.
type stepper struct {
	text string
	step chan struct{}
	runs atomic.Int32
}

func newStepper(t *testing.T) *stepper {
	t.Helper()
	s := &stepper{step: make(chan struct{})}
	s.text = script(t, func(ctx context.Context, task *agent.Task) error {
		s.runs.Add(1)
		chunks := task.Stream(&a2apb.Artifact{ArtifactId: "a"})
		n := 0
		for range s.step {
			if err := chunks.Send(ctx, agent.Text(fmt.Sprintf("%d,", n))); err != nil {
				return err
			}
			n++
		}
		return nil
	})
	return s
}

func (s *stepper) steps(n int) {
	for range n {
		s.step <- struct{}{}
	}
}

// A2A §3.5.2: what came while a sender had no gateway is not missing in the
// stream that it opens at another one, and the agent has noticed nothing.
func TestAStreamOfAKilledGatewayGoesOnAtAnother(t *testing.T) {
	t.Parallel()
	eachEdge(t, func(t *testing.T, e *edge) {
		for i, c := range e.callers(t) {
			work := newStepper(t)
			s := c.sendStream(say(work.text))
			work.steps(2)
			seen := s.until(func(e binding.Event) bool { return e.GetArtifactUpdate().GetAppend() })
			id := seen[0].GetTask().GetId()
			e.Gateway.Kill(t)
			_, err := s.Next()
			require.Error(t, err)
			work.steps(3)

			other := callers(t, e.cluster, probeAgent)[i]
			var rest []binding.Event
			if c.Name() == "grpc" {
				again := other.subscribe(id)
				require.Equal(t, working, state(again.task()))
				work.steps(2)
				close(work.step)
				again.rest()
				require.Len(t, other.get(id).GetArtifacts()[0].GetParts(), 7)
			} else {
				again := other.subscribe(id, binding.With("Last-Event-ID", seen[len(seen)-1].ID))
				work.steps(2)
				close(work.step)
				rest = again.rest()
				require.Len(t, rest, 6, "five chunks and the end")
				other.requireResumed(seen, rest)
			}
			require.Equal(t, completed, state(other.get(id)))
			require.Equal(t, int32(1), work.runs.Load())
			e.Gateway.Start(t)
		}
	})
}

// A2A §3.3.1: a sender whose gateway died before it answered sends again, at
// another one: first messages and answers to a question alike.
func TestARetryAfterTheDeathOfAGatewayChangesNothing(t *testing.T) {
	t.Parallel()
	eachEdge(t, func(t *testing.T, e *edge) {
		gate := make(chan struct{})
		running := make(chan struct{}, 100)
		text := script(t, func(ctx context.Context, task *agent.Task) error {
			running <- struct{}{}
			if len(task.Messages()) == 1 {
				return task.AskInput(ctx, agent.Text("?"))
			}
			<-gate
			return nil
		})
		first := say(text)
		asked := answers(t, e.callers(t), 30, first, func() {})
		for _, a := range asked {
			require.NotNil(t, a)
			require.Equal(t, inputRequired, state(a))
			require.Equal(t, asked[0].GetId(), a.GetId())
		}
		<-running

		answer := say("answer", toTask(asked[0].GetId()))
		lost := answers(t, e.callers(t), 10, answer, func() {
			<-running
			e.Gateway.Kill(t)
		})
		for _, a := range lost {
			require.Nil(t, a, "answered although the agent works")
		}
		done := answers(t, callers(t, e.cluster, probeAgent), 20, answer, func() { close(gate) })
		for _, a := range done {
			require.Equal(t, completed, state(a))
			require.Equal(t, []string{text, "?", "answer"}, texts(a.GetHistory()))
		}
		require.Empty(t, running, "a run without need")
	})
}

// answers sends the same n times at once, does something meanwhile, and returns
// the tasks; nil where the connection was lost.
func answers(t *testing.T, all []*caller, n int, in *a2apb.SendMessageRequest, meanwhile func()) []*a2apb.Task {
	t.Helper()
	got := make([]*a2apb.Task, n)
	var sends sync.WaitGroup
	for i := range n {
		sends.Go(func() {
			c := all[i%len(all)]
			answer, err := c.Call(within(t), binding.SendMessage, in)
			switch {
			case err != nil:
			case answer.Err != nil:
				t.Errorf("%s: refused: %v", c.Name(), answer.Err)
			default:
				got[i] = answer.Result.(*a2apb.SendMessageResponse).GetTask()
			}
		})
	}
	meanwhile()
	sends.Wait()
	return got
}

// A stream does not end with the notifier behind it: it goes on when there is
// one again, with a snapshot where events were missed, and without a hole.
func TestStreamsOutliveTheirNotifier(t *testing.T) {
	t.Parallel()
	eachEdge(t, func(t *testing.T, e *edge) {
		work := newStepper(t)
		all := e.callers(t)
		sent := all[0].send(say(work.text, immediately))
		var streams []*stream
		seen := make([][]binding.Event, len(all))
		for i, c := range all {
			s := c.subscribe(sent.GetId())
			seen[i] = []binding.Event{s.event()}
			streams = append(streams, s)
		}
		work.steps(2)
		for i, s := range streams {
			seen[i] = append(seen[i], s.until(func(e binding.Event) bool { return e.GetArtifactUpdate().GetAppend() })...)
		}
		e.Notifier.Kill(t)
		work.steps(2)
		e.Notifier.Start(t)
		work.steps(2)
		close(work.step)
		for i, s := range streams {
			events := slices.Concat(seen[i], s.rest())
			s.c.requireGrowingIDs(events)
			stored := s.c.get(sent.GetId())
			s.c.requireSame(s.c.replay(events), stored)
			require.Equal(t, completed, state(stored))
			require.Len(t, stored.GetArtifacts()[0].GetParts(), 6)
		}
		require.Equal(t, int32(1), work.runs.Load())
	})
}
