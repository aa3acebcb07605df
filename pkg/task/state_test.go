package task_test

import (
	"slices"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/task"
	"github.com/stretchr/testify/require"
)

// Rows: from; columns: to, in the order of the enum's numbers.
var table = map[task.State]string{
	//                  U S W C F X I R A
	task.Submitted:                         "0 0 1 0 1 1 0 1 0",
	task.Working:                           "0 0 1 1 1 1 1 1 1",
	task.InputRequired:                     "0 0 1 0 1 1 0 0 0",
	task.AuthRequired:                      "0 0 1 0 1 1 0 0 0",
	task.Completed:                         "0 0 0 0 0 0 0 0 0",
	task.Failed:                            "0 0 0 0 0 0 0 0 0",
	task.Canceled:                          "0 0 0 0 0 0 0 0 0",
	task.Rejected:                          "0 0 0 0 0 0 0 0 0",
	a2apb.TaskState_TASK_STATE_UNSPECIFIED: "0 0 0 0 0 0 0 0 0",
}

func TestEveryPairOfStatesIsDecided(t *testing.T) {
	t.Parallel()
	require.Len(t, table, len(a2apb.TaskState_name))
	for from, row := range table {
		for to := range a2apb.TaskState_name {
			allowed := row[2*to] == '1'
			require.Equal(t, allowed, task.CanMove(from, task.State(to)), "%s to %s", from, task.State(to))
		}
	}
}

func TestTerminalStatesAllowNoMove(t *testing.T) {
	t.Parallel()
	for s := range a2apb.TaskState_name {
		state := task.State(s)
		if !task.Terminal(state) {
			continue
		}
		for to := range a2apb.TaskState_name {
			require.False(t, task.CanMove(state, task.State(to)))
		}
	}
}

func TestSettledIsTerminalOrInterrupted(t *testing.T) {
	t.Parallel()
	settled := []task.State{
		task.Completed, task.Failed, task.Canceled, task.Rejected, task.InputRequired, task.AuthRequired,
	}
	for s := range a2apb.TaskState_name {
		state := task.State(s)
		require.Equal(t, slices.Contains(settled, state), task.Settled(state), state.String())
		require.Equal(t, state != a2apb.TaskState_TASK_STATE_UNSPECIFIED, task.Known(state), state.String())
	}
	require.False(t, task.Known(99))
	require.False(t, task.Known(-1))
}
