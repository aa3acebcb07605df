package conformance_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/services/e2e/internal/binding"
)

// CORE-CANCEL-001, A2A §3.1.5, §3.3.1: canceling again gives the task again.
func TestCancelIsFinalAndRepeatable(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		sent := c.send(say("sleep 30", immediately))
		watch := c.subscribe(sent.GetId())
		got := c.cancel(sent.GetId())
		require.Equal(t, sent.GetId(), got.GetId())
		require.Equal(t, canceled, state(got))
		for _, other := range callers(t, c.cluster, c.agent) {
			other.requireEqual(got, other.cancel(sent.GetId()))
		}
		events := watch.rest()
		require.Equal(t, canceled, state(c.replay(events)))
		c.requireGrowingIDs(events)
		c.requireEqual(got, c.get(sent.GetId()))
	})
}

// CORE-CANCEL-002, A2A §3.1.5.
func TestAnEndedTaskIsNotCancelable(t *testing.T) {
	t.Parallel()
	each(t, probeAgent, func(t *testing.T, c *caller) {
		for _, end := range []a2apb.TaskState{completed, failed, rejected} {
			before := c.finished(end)
			c.refused(taskNotCancelable, binding.CancelTask, &a2apb.CancelTaskRequest{Id: before.GetId()})
			c.requireEqual(before, c.get(before.GetId()))
		}
	})
}

// CORE-CANCEL-003.
func TestCancelOfAnUnknownTaskIsNotFound(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(_ *testing.T, c *caller) {
		c.refused(taskNotFound, binding.CancelTask, &a2apb.CancelTaskRequest{Id: "tck-nonexistent-1"})
	})
}

// A2A §8.1: every state that is not terminal can be canceled.
func TestTasksThatWaitCanBeCanceled(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		for _, text := range []string{"ask", "auth"} {
			sent := c.send(say(text))
			require.Equal(t, canceled, state(c.cancel(sent.GetId())))
			c.refused(unsupportedOperation, binding.SendMessage, say("late", toTask(sent.GetId())))
		}
		queued := c.to(unservedAgent)
		sent := queued.send(say("wait", immediately))
		require.Equal(t, submitted, state(sent))
		require.Equal(t, canceled, state(queued.cancel(sent.GetId())))
	})
}

// The handler's context ends, with what the sender said, and what it writes
// afterwards is not seen.
func TestCancelReachesTheHandlerAndFencesItOff(t *testing.T) {
	t.Parallel()
	each(t, probeAgent, func(t *testing.T, c *caller) {
		cause, late := make(chan error, 1), make(chan error, 1)
		running := make(chan struct{})
		text := script(t, func(ctx context.Context, task *agent.Task) error {
			close(running)
			<-ctx.Done()
			cause <- context.Cause(ctx)
			afterwards := context.WithoutCancel(ctx)
			err := task.Emit(afterwards, artifact("late", "x"))
			late <- errors.Join(err, task.Complete(afterwards))
			return nil
		})
		sent := c.send(say(text, immediately))
		<-running
		why, err := structpb.NewStruct(map[string]any{"why": "changed my mind"})
		require.NoError(t, err)
		got := call[*a2apb.Task](c, binding.CancelTask, &a2apb.CancelTaskRequest{Id: sent.GetId(), Metadata: why})

		ended := <-cause
		require.ErrorIs(t, ended, agent.ErrCanceled)
		var told *agent.CanceledError
		require.ErrorAs(t, ended, &told)
		c.requireEqual(why, told.Metadata)
		require.Error(t, <-late)
		c.requireEqual(got, c.get(sent.GetId()))
	})
}

// An agent that ignores its context holds nobody up.
func TestCancelDoesNotWaitForTheAgent(t *testing.T) {
	t.Parallel()
	each(t, probeAgent, func(t *testing.T, c *caller) {
		gate := make(chan struct{})
		running := make(chan struct{})
		text := script(t, func(context.Context, *agent.Task) error {
			close(running)
			<-gate
			return nil
		})
		sent := c.send(say(text, immediately))
		<-running
		require.Equal(t, canceled, state(c.cancel(sent.GetId())))
		close(gate)
		require.Equal(t, canceled, state(c.get(sent.GetId())))
	})
}

// A2A §3.1.5, §3.5.2: whichever commits first wins, and what a caller was told
// stays true.
func TestCancelAndCompletionHaveOneWinner(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		delays := random(t).Perm(200)
		c.repeat(t, len(delays), func(t *testing.T, c *caller, i int) {
			t.Helper()
			sent := c.send(say("sleep 0.05", immediately))
			watch, refused, err := c.Open(within(t), binding.SubscribeToTask, &a2apb.SubscribeToTaskRequest{Id: sent.GetId()})
			require.NoError(t, err)
			pause(t, delays[i]/2)
			told := cancelTwice(c, sent.GetId())
			got := c.get(sent.GetId())
			for _, answer := range told {
				if answer.Err == nil {
					require.Equal(t, canceled, state(got))
					continue
				}
				taskNotCancelable.check(t, c.Binding, answer)
				require.Equal(t, completed, state(got))
			}
			if refused == nil {
				c.requireOneEnd((&stream{Stream: watch, c: c}).rest(), got)
			}
		})
	})
}

func cancelTwice(c *caller, id string) [2]*binding.Answer {
	var told [2]*binding.Answer
	var both sync.WaitGroup
	for i := range told {
		both.Go(func() {
			answer, err := c.Call(within(c.t), binding.CancelTask, &a2apb.CancelTaskRequest{Id: id})
			if err != nil {
				c.t.Error(err)
				answer = &binding.Answer{Result: &a2apb.Task{}}
			}
			told[i] = answer
		})
	}
	both.Wait()
	return told
}

// requireOneEnd: one terminal event, the last, and it is what the task is.
func (c *caller) requireOneEnd(events []binding.Event, got *a2apb.Task) {
	c.t.Helper()
	for i, e := range events {
		if terminal[e.GetStatusUpdate().GetStatus().GetState()] {
			require.Equal(c.t, len(events)-1, i, "an event after the end: %v", events[i:])
		}
	}
	c.requireSame(c.replay(events), got)
}
