package conformance_test

import (
	"context"
	"fmt"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/services/e2e/internal/binding"
)

// CORE-HIST-001, CORE-HIST-002, CORE-HIST-003, CORE-HIST-004, CORE-HIST-005,
// CORE-HIST-006, A2A §3.2.4: the newest n, in order, and never more.
func TestHistoryLengthCutsWhatIsReturned(t *testing.T) {
	t.Parallel()
	each(t, probeAgent, func(t *testing.T, c *caller) {
		text := script(t, func(ctx context.Context, task *agent.Task) error {
			return task.AskInput(ctx, agent.Text(fmt.Sprintf("question %d", len(task.Messages()))))
		})
		contextID := "c-" + uuid.NewString()
		id := c.send(say(text, inContext(contextID))).GetId()
		c.send(say("answer 1", toTask(id)))
		full := c.send(say("answer 2", toTask(id)))
		want := []string{text, "question 1", "answer 1", "question 2", "answer 2"}
		require.Equal(t, want, texts(full.GetHistory()))
		require.Equal(t, "question 3", statusText(full), "the current question is in the status")
		for _, m := range full.GetHistory() {
			require.NotEmpty(t, m.GetMessageId())
			require.Equal(t, id, m.GetTaskId())
			require.Equal(t, contextID, m.GetContextId())
		}

		for n, first := range map[int32]int{0: 5, 1: 4, 2: 3, 5: 0, 6: 0, 2147483647: 0} {
			got := call[*a2apb.Task](c, binding.GetTask, &a2apb.GetTaskRequest{Id: id, HistoryLength: &n})
			require.Equal(t, want[first:], texts(got.GetHistory()), "GetTask, historyLength %d", n)
			listed := c.list(&a2apb.ListTasksRequest{ContextId: contextID, HistoryLength: &n})
			require.Equal(t, want[first:], texts(listed.GetTasks()[0].GetHistory()), "ListTasks, historyLength %d", n)
		}
		c.requireEqual(full, c.get(id))
	})
}

// CORE-HIST-002: in every operation that returns a task.
func TestHistoryLengthOfASendIsThatOfItsAnswer(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		for n := range int32(2) {
			blocking := c.send(say("ask", withHistory(n)))
			require.Len(t, blocking.GetHistory(), int(n))
			require.Len(t, c.send(say("ask", withHistory(n), immediately)).GetHistory(), int(n))
			s := c.sendStream(say("ask", withHistory(n)))
			require.Len(t, s.task().GetHistory(), int(n))
			s.Close()
			again := c.send(say("answer", toTask(blocking.GetId()), withHistory(n)))
			require.Len(t, again.GetHistory(), int(n))
			if n == 1 {
				require.Equal(t, "answer", textOf(again.GetHistory()[0].GetParts()))
			}
			require.Len(t, c.get(blocking.GetId()).GetHistory(), 3, "what is stored is whole")
		}
	})
}
