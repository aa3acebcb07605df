package conformance_test

import (
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/harness"
)

// GRPC-SVC-001, GRPC-SVC-002, BIND-EQUIV-001: all RPCs are there.
func TestGRPCServesTheElevenOperations(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
		c := callers(t, cluster, defaultAgent)[2]
		for op, in := range map[binding.Op]proto.Message{
			binding.SendMessage:          &a2apb.SendMessageRequest{},
			binding.GetTask:              &a2apb.GetTaskRequest{},
			binding.ListTasks:            &a2apb.ListTasksRequest{},
			binding.CancelTask:           &a2apb.CancelTaskRequest{},
			binding.CreatePushConfig:     &a2apb.TaskPushNotificationConfig{},
			binding.GetPushConfig:        &a2apb.GetTaskPushNotificationConfigRequest{},
			binding.ListPushConfigs:      &a2apb.ListTaskPushNotificationConfigsRequest{},
			binding.DeletePushConfig:     &a2apb.DeleteTaskPushNotificationConfigRequest{},
			binding.GetExtendedAgentCard: &a2apb.GetExtendedAgentCardRequest{},
		} {
			if answer := c.ask(op, in); answer.Err != nil {
				require.NotEqual(t, codes.Unimplemented, answer.Err.GRPC, op)
				require.NotEmpty(t, answer.Err.Reason(), op)
			}
		}
		c.refusedStream(invalidParams, binding.SendStreamingMessage, &a2apb.SendMessageRequest{})
		c.refusedStream(invalidParams, binding.SubscribeToTask, &a2apb.SubscribeToTaskRequest{})
	})
}

// The official Go client always sends a page size, 0 when its caller gave none.
func TestGRPCTakesAZeroPageSizeForNone(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
		c := callers(t, cluster, defaultAgent)[2]
		zero := int32(0)
		got := c.list(&a2apb.ListTasksRequest{PageSize: &zero, ContextId: uuid.NewString()})
		require.Equal(t, int32(50), got.GetPageSize())
	})
}

// GRPC-ERR-002 in the edition of A2A 1.0.0, which an agent can be set to. (The
// version is refused before the request says which agent it is for.)
func TestTheOlderErrorProfileAnswersUnimplemented(t *testing.T) {
	t.Parallel()
	older := func(r refusal) refusal {
		r.grpc = codes.Unimplemented
		return r
	}
	each(t, olderAgent, func(t *testing.T, c *caller) {
		want := unsupportedOperation
		push := pushNotSupported
		if c.Name() == "grpc" {
			want, push = older(want), older(push)
		}
		done := c.send(say("echo"))
		c.refused(want, binding.SendMessage, say("more", toTask(done.GetId())))
		c.refusedStream(want, binding.SubscribeToTask, &a2apb.SubscribeToTaskRequest{Id: done.GetId()})
		c.refused(push, binding.ListPushConfigs, &a2apb.ListTaskPushNotificationConfigsRequest{TaskId: done.GetId()})
		c.refused(taskNotCancelable, binding.CancelTask, &a2apb.CancelTaskRequest{Id: done.GetId()})
	})
}
