package agent_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/pkg/agent/agenttest"
	"github.com/errandhq/errand/pkg/task"
	"github.com/stretchr/testify/require"
)

type remembered struct {
	Tasks []string `json:"tasks"`
}

func TestContext_IsRememberedFromTaskToTask(t *testing.T) {
	t.Parallel()
	var seen remembered
	c, _ := cluster(func(ctx context.Context, t *agent.Task) error {
		if err := t.Context().Get(ctx, &seen); err != nil {
			return err
		}
		return agent.UpdateContext(ctx, t.Context(), func(r *remembered) error {
			r.Tasks = append(r.Tasks, t.ID())
			return nil
		})
	})
	first := send(t, c, agenttest.Text("one"))
	require.Empty(t, seen.Tasks)

	next := agenttest.Text("two")
	next.ContextId = first.GetContextId()
	second := send(t, c, next)
	require.Equal(t, []string{first.GetId()}, seen.Tasks)

	send(t, c, agenttest.Text("elsewhere"))
	require.Equal(t, []string{first.GetId()}, seen.Tasks, "a context of its own knows nothing")
	require.NotEqual(t, first.GetId(), second.GetId())
}

func TestUpdateContext_LosesNothingToOthers(t *testing.T) {
	t.Parallel()
	c, _ := cluster(func(ctx context.Context, t *agent.Task) error {
		return agent.UpdateContext(ctx, t.Context(), func(r *remembered) error {
			r.Tasks = append(r.Tasks, t.ID())
			return nil
		})
	})
	var turns sync.WaitGroup
	for range 8 {
		m := agenttest.Text("x")
		m.ContextId = "shared"
		turns.Go(func() { _, _ = c.Send(m) })
	}
	turns.Wait()

	var seen remembered
	m := agenttest.Text("x")
	m.ContextId = "shared"
	last := send(t, c, m)
	require.Equal(t, task.Completed, last.GetStatus().GetState())
	require.NoError(t, c.Context("shared").Get(t.Context(), &seen))
	require.Len(t, seen.Tasks, 9)
}

func TestUpdateContext_ErrorOfTheChangeLeavesTheState(t *testing.T) {
	t.Parallel()
	c, _ := cluster(func(context.Context, *agent.Task) error { return nil })
	state := c.Context("c1")
	broken := errors.New("broken")
	require.ErrorIs(t, agent.UpdateContext(t.Context(), state, func(*remembered) error { return broken }), broken)
	var seen remembered
	require.NoError(t, state.Get(t.Context(), &seen))
	require.Empty(t, seen.Tasks)
}

func TestContext_TurnsAreTheOnesBeforeNewestFirst(t *testing.T) {
	t.Parallel()
	var turns []string
	c, _ := cluster(func(ctx context.Context, t *agent.Task) error {
		before, err := t.Context().Turns(ctx, 2)
		if err != nil {
			return err
		}
		turns = nil
		for _, turn := range before {
			turns = append(turns, turn.GetTask().GetId())
		}
		return nil
	})
	var ids []string
	for range 4 {
		m := agenttest.Text("x")
		m.ContextId = "c1"
		ids = append(ids, send(t, c, m).GetId())
	}
	require.Equal(t, []string{ids[2], ids[1]}, turns)
}

func TestTask_ReferencesAreThoseThatTheSenderMaySee(t *testing.T) {
	t.Parallel()
	var found []*a2apb.Task
	c, _ := cluster(func(ctx context.Context, t *agent.Task) error {
		var err error
		found, err = t.References(ctx)
		return err
	})
	first := send(t, c, agenttest.Text("x"))
	m := agenttest.Text("y")
	m.ReferenceTaskIds = []string{"unknown", first.GetId()}
	require.Equal(t, task.Completed, send(t, c, m).GetStatus().GetState())
	require.Len(t, found, 1)
	require.Equal(t, first.GetId(), found[0].GetId())
}
