package conformance_test

import (
	"context"
	"errors"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/services/e2e/internal/binding"
)

// A2A §3.1.2, §3.2.2, §13.4: however an agent ends, its task ends, and the
// sender sees a safe text.
func TestATaskFailsSafelyWhenItsAgentDoes(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		for _, text := range []string{"noterm", "panic", "fail"} {
			blocking := c.send(say(text))
			require.Equal(t, failed, state(blocking), text)
			require.NotEmpty(t, statusText(blocking))
			requireNoInsides(t, statusText(blocking))
			events := c.sendStream(say(text)).rest()
			require.Equal(t, failed, events[len(events)-1].GetStatusUpdate().GetStatus().GetState(), text)
		}
	})
	each(t, probeAgent, func(t *testing.T, c *caller) {
		text := script(t, func(context.Context, *agent.Task) error {
			return errors.New("open /etc/secret.go:12: pq: password authentication failed for user \"root\"")
		})
		got := c.send(say(text))
		require.Equal(t, failed, state(got))
		require.NotContains(t, statusText(got), "secret")
		require.NotContains(t, statusText(got), "root")
	})
}

// A handler that settles nothing completes its task.
func TestAHandlerThatReturnsCompletes(t *testing.T) {
	t.Parallel()
	each(t, probeAgent, func(t *testing.T, c *caller) {
		text := script(t, func(context.Context, *agent.Task) error { return nil })
		require.Equal(t, completed, state(c.send(say(text))))
	})
}

// Rule 3: after the end nothing is added, whatever the agent tries.
func TestNothingIsWrittenAfterTheEnd(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		events := c.sendStream(say("late")).rest()
		told := c.replay(events)
		require.Equal(t, completed, state(told))
		c.requireOneEnd(events, c.get(told.GetId()))
	})
	each(t, probeAgent, func(t *testing.T, c *caller) {
		late := make(chan error, 3)
		text := script(t, func(ctx context.Context, task *agent.Task) error {
			err := task.Complete(ctx)
			late <- task.Emit(ctx, artifact("late", "x"))
			late <- task.Progress(ctx, agent.Text("late"))
			late <- task.Fail(ctx)
			return err
		})
		got := c.send(say(text))
		for range 3 {
			require.ErrorIs(t, <-late, agent.ErrEnded)
		}
		c.requireEqual(got, c.get(got.GetId()))
		require.Equal(t, completed, state(got))
	})
}

// A2A §4.2: chunks make one artifact; append extends, no append replaces in
// place, metadata merges, and another artifact keeps its position.
func TestChunksMakeOneArtifact(t *testing.T) {
	t.Parallel()
	each(t, probeAgent, func(t *testing.T, c *caller) {
		replace := make(chan struct{})
		text := script(t, func(ctx context.Context, task *agent.Task) error {
			first := task.Stream(&a2apb.Artifact{ArtifactId: "a", Name: "numbers", Extensions: []string{"https://x.test/e"}})
			err := errors.Join(first.Send(ctx, agent.Text("1")), first.Send(ctx, agent.Text("2")), first.SendLast(ctx, agent.Text("3")),
				task.Emit(ctx, artifact("b", "beside")), task.Flush(ctx))
			<-replace
			again := task.Stream(&a2apb.Artifact{ArtifactId: "a", Name: "letters"})
			return errors.Join(err, again.Send(ctx, agent.Text("x")), again.SendLast(ctx, agent.Text("y")))
		})
		s := c.sendStream(say(text))
		events := s.until(func(e binding.Event) bool { return e.GetArtifactUpdate().GetArtifact().GetArtifactId() == "b" })
		before := c.get(c.replay(events).GetId())
		require.Equal(t, "123", textOf(before.GetArtifacts()[0].GetParts()))
		require.Equal(t, "numbers", before.GetArtifacts()[0].GetName())
		require.Equal(t, []string{"https://x.test/e"}, before.GetArtifacts()[0].GetExtensions())
		close(replace)
		events = append(events, s.rest()...)
		after := c.get(before.GetId())
		c.requireSame(c.replay(events), after)
		require.Equal(t, "xy", textOf(after.GetArtifacts()[0].GetParts()))
		require.Equal(t, "letters", after.GetArtifacts()[0].GetName())
		require.Equal(t, "beside", textOf(after.GetArtifacts()[1].GetParts()))
	})
}

// A run that was given up is tried again, and what it had emitted is not
// doubled; the key for effects stays the same.
func TestANewAttemptReplacesWhatTheOldOneEmitted(t *testing.T) {
	t.Parallel()
	each(t, probeAgent, func(t *testing.T, c *caller) {
		keys := make(chan string, 2)
		text := script(t, func(ctx context.Context, task *agent.Task) error {
			keys <- task.IdempotencyKey()
			chunks := task.Stream(&a2apb.Artifact{})
			err := errors.Join(chunks.Send(ctx, agent.Text("1")), chunks.SendLast(ctx, agent.Text("2")))
			if task.Attempt() == 1 {
				return errors.Join(err, task.Retry(ctx, 0))
			}
			return err
		})
		got := c.send(say(text))
		require.Equal(t, completed, state(got))
		require.Len(t, got.GetArtifacts(), 1)
		require.Equal(t, "12", textOf(got.GetArtifacts()[0].GetParts()))
		first, second := <-keys, <-keys
		require.Equal(t, first, second)
	})
}

// After max_attempts a task that no run finishes fails.
func TestATaskThatNoRunFinishesFails(t *testing.T) {
	t.Parallel()
	each(t, probeAgent, func(t *testing.T, c *caller) {
		attempts := make(chan int, 10)
		text := script(t, func(ctx context.Context, task *agent.Task) error {
			attempts <- task.Attempt()
			return task.Retry(ctx, 0)
		})
		got := c.send(say(text))
		require.Equal(t, failed, state(got))
		require.NotEmpty(t, statusText(got))
		require.Len(t, attempts, 3)
	})
}

// A context remembers over tasks what its agent stored in it.
func TestAnAgentRemembersInAContext(t *testing.T) {
	t.Parallel()
	each(t, probeAgent, func(t *testing.T, c *caller) {
		count := func(ctx context.Context, task *agent.Task) error {
			var n int
			err := agent.UpdateContext(ctx, task.Context(), func(stored *int) error {
				*stored++
				n = *stored
				return nil
			})
			turns, turnsErr := task.Context().Turns(ctx, 10)
			return errors.Join(err, turnsErr, task.Emit(ctx, artifact("n", string(rune('0'+n)), string(rune('0'+len(turns))))))
		}
		here := inContext("c-" + uuid.NewString())
		for i, want := range []string{"10", "21", "32"} {
			got := c.send(say(script(t, count), here))
			require.Equal(t, want, textOf(got.GetArtifacts()[0].GetParts()), "task %d of the context", i)
		}
		elsewhere := c.send(say(script(t, count)))
		require.Equal(t, "10", textOf(elsewhere.GetArtifacts()[0].GetParts()))
	})
}
