package agent

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/task"
	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	executorv1 "github.com/errandhq/errand/proto/gen/errand/executor/v1"
	"github.com/google/uuid"
)

// Request is a message whose sender waits for an answer without a task.
type Request struct {
	lookup
	proto  *executorv1.DirectRequest
	logger *slog.Logger

	mu     sync.Mutex
	answer *executorv1.DirectReply
}

// Message is the sender's message. It is shared: do not change it.
func (r *Request) Message() *a2apb.Message { return r.proto.GetMessage() }

// Info is what came with the message: accepted output modes, request metadata,
// active extensions, subject, trace.
func (r *Request) Info() *eventv1.RequestInfo { return r.proto.GetRequest() }

// Tenant is the tenant of the sender.
func (r *Request) Tenant() string { return r.proto.GetTenant() }

// Logger names the message in each of its lines.
func (r *Request) Logger() *slog.Logger { return r.logger }

// Reply answers with a Message of these parts. There is one answer: a second
// one is not sent, logged as a fault of the agent, and ErrReplied.
func (r *Request) Reply(parts ...*a2apb.Part) error {
	if err := checkParts(parts); err != nil {
		return fmt.Errorf("reply: %w", err)
	}
	m := &a2apb.Message{
		MessageId: task.NewID(), ContextId: r.Message().GetContextId(),
		Role: a2apb.Role_ROLE_AGENT, Parts: parts,
	}
	return r.settle(&executorv1.DirectReply{Kind: &executorv1.DirectReply_Message{Message: m}})
}

// NeedTask says that the message must become a task, and why.
func (r *Request) NeedTask(reason string) error {
	return r.settle(taskNeeded(reason))
}

// Reject refuses the message, with a reason that the sender may see.
func (r *Request) Reject(reason string) error {
	return r.settle(failure(executorv1.DirectFailure_KIND_REJECTED, reason))
}

func (r *Request) settle(answer *executorv1.DirectReply) error {
	clean(answer.ProtoReflect())
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answer != nil {
		r.logger.Error("the agent answered one message twice")
		return ErrReplied
	}
	r.answer = answer
	return nil
}

// fail is the answer to a message that could not be handled: the sender gets an
// id, the log has the cause under it.
func (r *Request) fail(ctx context.Context, cause error) *executorv1.DirectReply {
	id := uuid.NewString()
	r.logger.ErrorContext(ctx, "message failed by its handler", "error", cause, "error_id", id)
	return failure(executorv1.DirectFailure_KIND_AGENT, safeText(cause)+" Reference: "+id)
}

func taskNeeded(reason string) *executorv1.DirectReply {
	return &executorv1.DirectReply{Kind: &executorv1.DirectReply_TaskNeeded{
		TaskNeeded: &executorv1.TaskNeeded{Reason: reason},
	}}
}

func failure(kind executorv1.DirectFailure_Kind, message string) *executorv1.DirectReply {
	return &executorv1.DirectReply{Kind: &executorv1.DirectReply_Failure{
		Failure: &executorv1.DirectFailure{Kind: kind, Message: message},
	}}
}
