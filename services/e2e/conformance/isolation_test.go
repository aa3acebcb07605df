package conformance_test

import (
	"net/http"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/harness"
)

// AUTH-SCOPE-001, AUTH-SCOPE-002, AUTH-SCOPE-003, CORE-LIST-001, A2A §13.1: a
// task of another agent does not exist, in no operation, and the refusal is that
// of an id that nobody ever had.
func TestATaskOfAnotherAgentDoesNotExist(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		mine := c.send(say("ask"))
		other := c.to(probeAgent)
		id := mine.GetId()
		for _, unknown := range []string{id, uuid.NewString()} {
			texts := []string{
				other.refused(taskNotFound, binding.GetTask, &a2apb.GetTaskRequest{Id: unknown}).Message,
				other.refused(taskNotFound, binding.CancelTask, &a2apb.CancelTaskRequest{Id: unknown}).Message,
				other.refused(taskNotFound, binding.SendMessage, say("x", toTask(unknown))).Message,
				other.refused(taskNotFound, binding.SendMessage, say("x", toTask(unknown), inContext(mine.GetContextId()))).Message,
				other.refusedStream(taskNotFound, binding.SendStreamingMessage, say("x", toTask(unknown))).Message,
				other.refusedStream(taskNotFound, binding.SubscribeToTask, &a2apb.SubscribeToTaskRequest{Id: unknown}).Message,
			}
			require.NotContains(t, texts, "agent")
		}
		require.Empty(t, other.list(&a2apb.ListTasksRequest{ContextId: mine.GetContextId()}).GetTasks())
		c.requireEqual(mine, c.get(id))

		// A context of the same name is another one there.
		theirs := other.send(say(script(t, settleAs(completed)), inContext(mine.GetContextId())))
		require.Equal(t, []string{theirs.GetId()}, idsOf(other.list(&a2apb.ListTasksRequest{ContextId: mine.GetContextId()}).GetTasks()))
		require.Equal(t, []string{id}, idsOf(c.list(&a2apb.ListTasksRequest{ContextId: mine.GetContextId()}).GetTasks()))
	})
}

// The routing id on the wire names the tenant, the agent or both.
func TestTheRoutingIDNamesTenantAndAgent(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		task := c.to(tckAgent).send(say("x", as("tck-complete-task-"+uuid.NewString())))
		for _, tenant := range []string{"self.tck", "default.tck"} {
			got := call[*a2apb.Task](c, binding.GetTask, &a2apb.GetTaskRequest{Tenant: tenant, Id: task.GetId()})
			c.requireEqual(task, got)
		}
		for _, tenant := range []string{"", "default", "default.scripted", "self.scripted"} {
			c.refused(taskNotFound, binding.GetTask, &a2apb.GetTaskRequest{Tenant: tenant, Id: task.GetId()})
		}
		mine := c.send(say("echo"))
		require.Equal(t, mine.GetId(), call[*a2apb.Task](c, binding.GetTask,
			&a2apb.GetTaskRequest{Tenant: "default", Id: mine.GetId()}).GetId())
	})
}

// A tenant is no credential: one that is not the sender's own gives nothing
// away, and nothing is folded or trimmed.
func TestAForeignTenantGivesNothingAway(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		mine := c.send(say("ask"))
		for _, tenant := range []string{"t2", "Default", " default", "default ", "default.", ".scripted", "default.scripted.x", "default.nobody", "*", "a/b"} {
			answer := c.ask(binding.GetTask, &a2apb.GetTaskRequest{Tenant: tenant, Id: mine.GetId()})
			require.NotNil(t, answer.Err, "tenant %q", tenant)
			require.Contains(t, []string{"TASK_NOT_FOUND", "INVALID_PARAMS", "UNAUTHORIZED", "METHOD_NOT_FOUND"}, answer.Err.Reason(), "tenant %q", tenant)
			in := say("echo")
			in.Tenant = tenant
			require.NotNil(t, c.ask(binding.SendMessage, in).Err, "tenant %q", tenant)
		}
	})
}

// Base path, path prefix and member may each name the agent; two that differ
// are an error.
func TestTwoPlacesThatNameDifferentAgentsAreAnError(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
		for _, path := range []string{"/agents/tck/self.scripted/tasks", "/agents/tck/default.probe/tasks", "/agents/tck/tasks?tenant=self.scripted"} {
			got := exchange{method: http.MethodGet, path: path}.do(t, cluster)
			refusedREST(t, got, 400, "INVALID_ARGUMENT", "INVALID_PARAMS")
		}
		body := `{"tenant":"self.scripted","message":` + inner(`"parts":[{"text":"x"}]`) + `}`
		for _, path := range []string{"/agents/tck/message:send", "/self.tck/message:send"} {
			got := exchange{method: http.MethodPost, path: path, body: body}.do(t, cluster)
			refusedREST(t, got, 400, "INVALID_ARGUMENT", "INVALID_PARAMS")
		}
		rpc := exchange{method: http.MethodPost, path: "/agents/tck/rpc", body: `{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"tenant":"self.scripted"}}`}
		require.Equal(t, -32602, parseRPC(t, rpc.do(t, cluster)).Error.Code)
		for _, path := range []string{"/agents/tck/self.tck/tasks", "/agents/tck/default/tasks", "/default.tck/tasks", "/self.tck/tasks", "/agents/tck/default.tck/tasks"} {
			got := exchange{method: http.MethodGet, path: path + "?pageSize=1"}.do(t, cluster)
			require.Equal(t, http.StatusOK, got.Status, "%s: %s", path, got.Body)
		}
	})
}

// referenceTaskIds are hints: what is not there for the sender is no error.
func TestReferencesToOthersAreNotThere(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		mine := c.send(say("echo"))
		for _, referenced := range []string{mine.GetId(), "nothing", c.finished(completed).GetId()} {
			in := say("echo")
			in.Message.ReferenceTaskIds = []string{referenced}
			got := c.send(in)
			require.Equal(t, completed, state(got))
			require.Equal(t, []string{referenced}, got.GetHistory()[0].GetReferenceTaskIds())
		}
	})
}
