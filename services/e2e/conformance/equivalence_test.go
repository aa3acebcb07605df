package conformance_test

import (
	"encoding/json"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/harness"
)

// BIND-EQUIV-001, BIND-EQUIV-002, BIND-FIELD-001, A2A §5.1: the same call has
// the same result, as JSON to the letter and as a message field by field.
func TestTheSameCallHasTheSameResultOnAllBindings(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
		all := callers(t, cluster, defaultAgent)
		asked, done := all[0].send(say("ask")), all[1].send(say("chunks 3"))
		canceled := all[2].cancel(all[2].send(say("sleep 30", immediately)).GetId())
		contextID, _ := all[0].many(3)
		two := int32(2)
		for _, same := range []struct {
			op binding.Op
			in proto.Message
		}{
			{binding.GetTask, &a2apb.GetTaskRequest{Id: asked.GetId()}},
			{binding.GetTask, &a2apb.GetTaskRequest{Id: done.GetId()}},
			{binding.CancelTask, &a2apb.CancelTaskRequest{Id: canceled.GetId()}},
			{binding.ListTasks, &a2apb.ListTasksRequest{ContextId: contextID}},
			{binding.ListTasks, &a2apb.ListTasksRequest{ContextId: contextID, PageSize: &two, IncludeArtifacts: new(true)}},
			{binding.ListTasks, &a2apb.ListTasksRequest{ContextId: uuid.NewString()}},
			{binding.SendMessage, say("hello there", as("same-"+contextID))},
			{binding.SendMessage, say("msg", as("same-message-"+contextID))},
		} {
			rpc, rest, grpc := all[0].ask(same.op, same.in), all[1].ask(same.op, same.in), all[2].ask(same.op, same.in)
			require.Nil(t, rpc.Err)
			require.JSONEq(t, string(rpc.JSON), string(rest.JSON))
			all[2].requireEqual(rpc.Result, grpc.Result)
			all[2].requireEqual(rest.Result, grpc.Result)
		}
	})
}

// BIND-EQUIV-003: the same refusal, with the same text and details.
func TestTheSameRefusalOnAllBindings(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
		all := callers(t, cluster, defaultAgent)
		done := all[0].send(say("echo"))
		noParts := say("x")
		noParts.Message.Parts = nil
		for _, same := range []struct {
			op   binding.Op
			in   proto.Message
			want refusal
		}{
			{binding.GetTask, &a2apb.GetTaskRequest{Id: "nope"}, taskNotFound},
			{binding.CancelTask, &a2apb.CancelTaskRequest{Id: done.GetId()}, taskNotCancelable},
			{binding.SendMessage, say("x", toTask(done.GetId())), unsupportedOperation},
			{binding.SendMessage, noParts, invalidParams},
			{binding.ListTasks, &a2apb.ListTasksRequest{PageToken: "abc"}, invalidParams},
			{binding.GetExtendedAgentCard, &a2apb.GetExtendedAgentCardRequest{}, unsupportedOperation},
			{binding.GetPushConfig, &a2apb.GetTaskPushNotificationConfigRequest{TaskId: done.GetId(), Id: "c"}, pushNotSupported},
		} {
			first := all[0].refused(same.want, same.op, same.in)
			for _, c := range all[1:] {
				other := c.refused(same.want, same.op, same.in)
				require.Equal(t, first.Message, other.Message)
				require.Len(t, other.Details, len(first.Details))
				for i := range first.Details {
					c.requireEqual(first.Details[i], other.Details[i])
				}
			}
		}
	})
}

// BIND-EQUIV-002: streams are the same item by item.
func TestStreamsHaveTheSameShapeOnAllBindings(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
		var shapes [3][]string
		for i, c := range callers(t, cluster, defaultAgent) {
			for _, text := range []string{"chunks 3", "ask", "fail", "msg"} {
				for _, e := range c.sendStream(say(text)).rest() {
					shapes[i] = append(shapes[i], shapeOf(t, e.StreamResponse))
				}
			}
		}
		require.NotEmpty(t, shapes[0])
		require.Equal(t, shapes[0], shapes[1])
		require.Equal(t, shapes[0], shapes[2])
	})
}

// shapeOf is an event without what differs from task to task.
func shapeOf(t *testing.T, e *a2apb.StreamResponse) string {
	t.Helper()
	shape, err := json.Marshal(map[string]any{
		"task": e.GetTask() != nil, "message": e.GetMessage() != nil, "state": e.GetStatusUpdate().GetStatus().GetState(),
		"artifact": e.GetArtifactUpdate().GetArtifact().GetArtifactId(), "parts": len(e.GetArtifactUpdate().GetArtifact().GetParts()),
		"append": e.GetArtifactUpdate().GetAppend(), "last": e.GetArtifactUpdate().GetLastChunk(),
	})
	require.NoError(t, err)
	return string(shape)
}

// CORE-CAP-001, CORE-CAP-003: as long as the
// card declares no push: checked before the task is looked for, and before an
// inline config makes one.
func TestUndeclaredCapabilitiesAreRefused(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		done := c.send(say("echo"))
		for _, id := range []string{done.GetId(), "nope"} {
			c.refused(pushNotSupported, binding.CreatePushConfig, &a2apb.TaskPushNotificationConfig{TaskId: id, Url: "https://hook.test/h"})
			c.refused(pushNotSupported, binding.GetPushConfig, &a2apb.GetTaskPushNotificationConfigRequest{TaskId: id, Id: "c"})
			c.refused(pushNotSupported, binding.ListPushConfigs, &a2apb.ListTaskPushNotificationConfigsRequest{TaskId: id})
			c.refused(pushNotSupported, binding.DeletePushConfig, &a2apb.DeleteTaskPushNotificationConfigRequest{TaskId: id, Id: "c"})
		}
		in := say("echo", inContext("c-"+uuid.NewString()))
		in.Configuration.TaskPushNotificationConfig = &a2apb.TaskPushNotificationConfig{Url: "https://hook.test/h"}
		c.refused(pushNotSupported, binding.SendMessage, in)
		c.refusedStream(pushNotSupported, binding.SendStreamingMessage, in)
		require.Empty(t, c.list(&a2apb.ListTasksRequest{ContextId: in.GetMessage().GetContextId()}).GetTasks())
		c.refused(unsupportedOperation, binding.GetExtendedAgentCard, &a2apb.GetExtendedAgentCardRequest{})
	})
}

// Nobody is there to answer directly: the sender may come again later, and
// nothing was stored.
func TestWithoutAnExecutorADirectMessageIsUnavailable(t *testing.T) {
	t.Parallel()
	each(t, absentAgent, func(t *testing.T, c *caller) {
		in := say("hello", inContext("c-"+uuid.NewString()))
		for range 2 {
			answer := c.ask(binding.SendMessage, in)
			refusal{"UNAVAILABLE", -32603, codes.Unavailable, 503}.check(t, c.Binding, answer)
			require.Positive(t, answer.Err.Retry().GetRetryDelay().AsDuration())
			if c.Name() == "rest" {
				require.NotEmpty(t, answer.Header.Get("Retry-After"))
			}
		}
		require.Empty(t, c.list(&a2apb.ListTasksRequest{ContextId: in.GetMessage().GetContextId()}).GetTasks())
	})
}
