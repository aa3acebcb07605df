package conformance_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/harness"
)

// A message to a running task reaches the handler that runs.
func TestAMessageToARunningTaskIsDelivered(t *testing.T) {
	t.Parallel()
	each(t, probeAgent, func(t *testing.T, c *caller) {
		running := make(chan struct{})
		text := script(t, func(ctx context.Context, task *agent.Task) error {
			close(running)
			m, err := task.Next(ctx)
			if err != nil {
				return err
			}
			return task.Emit(ctx, artifact("heard", agent.TextOf(m.GetMessage())))
		})
		sent := c.send(say(text, immediately))
		<-running
		got := c.send(say("and this", toTask(sent.GetId())))
		require.Equal(t, completed, state(got))
		require.Equal(t, "and this", textOf(got.GetArtifacts()[0].GetParts()))
		require.Equal(t, []string{text, "and this"}, texts(got.GetHistory()))
	})
}

// An agent whose file says so takes no message while it works.
func TestAMessageToARunningTaskIsRefusedWhereTheAgentSaysSo(t *testing.T) {
	t.Parallel()
	each(t, strictAgent, func(t *testing.T, c *caller) {
		hold := newHold(t)
		sent := c.send(say(hold.text, immediately))
		hold.awaitRun(t)
		c.refused(unsupportedOperation, binding.SendMessage, say("more", toTask(sent.GetId())))
		hold.release()
		require.Len(t, c.await(sent.GetId(), completed).GetHistory(), 1)
	})
}

// One execution at a time: of many answers to one question each is consumed
// once or refused, and none starts a second run beside the first.
func TestManyFollowUpsRunOneAfterTheOther(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
		var running atomic.Int32
		var overlapped atomic.Bool
		var mu sync.Mutex
		var heard []string
		text := script(t, func(ctx context.Context, task *agent.Task) error {
			if running.Add(1) > 1 {
				overlapped.Store(true)
			}
			defer running.Add(-1)
			mu.Lock()
			for _, m := range task.NewMessages() {
				heard = append(heard, agent.TextOf(m.GetMessage()))
			}
			done := len(heard) > 20 || slices.Contains(heard, "last")
			mu.Unlock()
			if done {
				return task.Complete(ctx)
			}
			return task.AskInput(ctx, agent.Text("more?"))
		})
		all := callers(t, cluster, probeAgent)
		asked := all[0].send(say(text))
		require.Equal(t, inputRequired, state(asked))

		accepted := sendTogether(t, all, asked.GetId(), 20)
		got := all[0].await(asked.GetId(), inputRequired, completed)
		for _, want := range accepted {
			require.Contains(t, texts(got.GetHistory()), want)
		}
		if state(got) == inputRequired {
			got = all[0].send(say("last", toTask(asked.GetId())))
		}
		require.Equal(t, completed, state(got))
		require.False(t, overlapped.Load(), "two runs at the same time")
		said := slices.DeleteFunc(texts(got.GetHistory()), func(s string) bool { return s == "more?" })
		require.ElementsMatch(t, said, heard, "each message in the history was handed over once")
	})
}

// sendTogether sends follow-ups at the same time over all bindings and returns
// the texts of those that were accepted.
func sendTogether(t *testing.T, all []*caller, taskID string, n int) []string {
	t.Helper()
	var mu sync.Mutex
	var accepted []string
	var sends sync.WaitGroup
	for i := range n {
		sends.Go(func() {
			c := all[i%len(all)]
			text := fmt.Sprintf("answer %d", i)
			answer, err := c.Call(within(t), binding.SendMessage, say(text, toTask(taskID), immediately))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				t.Errorf("%s: %v", c.Name(), err)
			case answer.Err == nil:
				accepted = append(accepted, text)
			case answer.Err.Reason() != unsupportedOperation.reason:
				t.Errorf("%s: refused with %s: %s", c.Name(), answer.Err.Reason(), answer.Err.Message)
			}
		})
	}
	sends.Wait()
	return accepted
}

// Everything that was acknowledged is there, whatever came at the same time:
// chunks of the agent, messages and a cancel of the sender.
func TestConcurrentChangesLoseNothing(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
		started := make(chan struct{})
		text := script(t, func(ctx context.Context, task *agent.Task) error {
			close(started)
			chunks := task.Stream(&a2apb.Artifact{ArtifactId: "log"})
			for i := range 100 {
				if err := chunks.Send(ctx, agent.Text(fmt.Sprintf("%d,", i))); err != nil {
					return err
				}
			}
			<-ctx.Done()
			return context.Cause(ctx)
		})
		all := callers(t, cluster, probeAgent)
		sent := all[0].send(say(text, immediately))
		watch := all[1].subscribe(sent.GetId())
		<-started
		var accepted []string
		var work sync.WaitGroup
		work.Go(func() { accepted = sendTogether(t, all, sent.GetId(), 20) })
		pause(t, random(t).IntN(20))
		require.Equal(t, canceled, state(all[2].cancel(sent.GetId())))
		work.Wait()

		got := all[0].get(sent.GetId())
		require.Equal(t, canceled, state(got))
		require.ElementsMatch(t, append([]string{text}, accepted...), texts(got.GetHistory()))
		told := watch.c.replay(watch.rest())
		watch.c.requireSame(told, got)
		if len(got.GetArtifacts()) > 0 {
			var whole strings.Builder
			for i := range len(got.GetArtifacts()[0].GetParts()) {
				fmt.Fprintf(&whole, "%d,", i)
			}
			require.Equal(t, whole.String(), textOf(got.GetArtifacts()[0].GetParts()))
		}
	})
}
