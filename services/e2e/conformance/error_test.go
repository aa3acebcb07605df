package conformance_test

import (
	"context"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/services/e2e/internal/binding"
)

// CORE-GET-001.
func TestGetReturnsTheTaskAsItIs(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		sent := c.send(say("ask"))
		c.requireEqual(sent, c.get(sent.GetId()))
		c.cancel(sent.GetId())
		require.Equal(t, canceled, state(c.get(sent.GetId())))
	})
}

// CORE-GET-002, GRPC-ERR-001, HTTP_JSON-ERR-002, JSONRPC-ERR-003: the ErrorInfo
// says which task, as the sender named it.
func TestAnUnknownTaskIsNotFound(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		for _, id := range []string{"nope", uuid.NewString(), "tck-nonexistent-task", "a/b", "a:cancel", "%", "ünï", "..", "'"} {
			got := c.refused(taskNotFound, binding.GetTask, &a2apb.GetTaskRequest{Id: id})
			require.Equal(t, id, got.Info().GetMetadata()["taskId"])
		}
		if c.Name() == "rest" { // a path without an id is that of no operation
			none := c.ask(binding.CancelTask, &a2apb.CancelTaskRequest{})
			require.Equal(t, "METHOD_NOT_FOUND", none.Err.Reason())
			return
		}
		c.invalid("id", binding.CancelTask, &a2apb.CancelTaskRequest{})
	})
}

// GRPC-ERR-002, HTTP_JSON-STATUS-001, JSONRPC-ERR-002, JSONRPC-SSE-002, A2A §5.4:
// each error that a sender can cause has the codes of its row on each binding.
// The other rows are caused in the tests of what they refuse.
func TestTheErrorTable(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		done := c.send(say("echo"))
		c.refused(taskNotFound, binding.GetTask, &a2apb.GetTaskRequest{Id: "nope"})
		c.refused(taskNotCancelable, binding.CancelTask, &a2apb.CancelTaskRequest{Id: done.GetId()})
		c.refused(pushNotSupported, binding.ListPushConfigs, &a2apb.ListTaskPushNotificationConfigsRequest{TaskId: done.GetId()})
		c.refused(unsupportedOperation, binding.SendMessage, say("x", toTask(done.GetId())))
		c.refused(versionNotSupported, binding.GetTask, &a2apb.GetTaskRequest{Id: done.GetId()}, binding.With("A2A-Version", "7.0"))
		c.refused(invalidParams, binding.SendMessage, &a2apb.SendMessageRequest{})
		c.to(pickyAgent).refused(extensionRequired, binding.SendMessage, say("x"))
		html := say("x")
		html.Message.Parts[0].MediaType = "text/html"
		c.to(pickyAgent).refused(contentType, binding.SendMessage, html, binding.With("A2A-Extensions", wanted))
	})
}

// The order of the checks: version, extensions, then what is in the request.
func TestChecksHaveAnOrder(t *testing.T) {
	t.Parallel()
	each(t, pickyAgent, func(_ *testing.T, c *caller) {
		nothing := &a2apb.SendMessageRequest{}
		c.refused(versionNotSupported, binding.SendMessage, nothing, binding.With("A2A-Version", "99.0"))
		c.refused(extensionRequired, binding.SendMessage, nothing)
		c.refused(invalidParams, binding.SendMessage, nothing, binding.With("A2A-Extensions", wanted))
		unknown := &a2apb.ListTaskPushNotificationConfigsRequest{TaskId: "nope"}
		c.refused(pushNotSupported, binding.ListPushConfigs, unknown, binding.With("A2A-Extensions", wanted))
	})
}

// InvalidAgentResponse is the agent's fault, and it says so without insides.
func TestAnAgentThatDoesNotAnswerIsTheAgentsFault(t *testing.T) {
	t.Parallel()
	each(t, probeAgent, func(t *testing.T, c *caller) {
		silent := quickScript(t, func(context.Context, *agent.Request) error { return nil })
		refusal{"INVALID_AGENT_RESPONSE", -32006, codes.Internal, 500}.check(t, c.Binding, c.ask(binding.SendMessage, say(silent)))
	})
}
