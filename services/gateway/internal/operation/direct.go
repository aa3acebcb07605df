package operation

import (
	"context"
	"errors"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	executorv1 "github.com/errandhq/errand/proto/gen/errand/executor/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/queue"
	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/services/gateway/internal/admission"
)

// acceptDirect asks an executor, which answers with a Message or says why a
// task is needed. The first commit under the message's key wins, so an answer
// that comes second to another one is dropped for it.
func (s *Service) acceptDirect(ctx context.Context, call *admission.Call, m message) (*sent, error) {
	if m.fingerprint != nil {
		if found, err := s.find(ctx, call, m); found != nil || err != nil {
			return found, err
		}
	}
	answer, err := s.ask(ctx, call, m)
	switch {
	case errors.Is(err, queue.ErrTooLarge) && call.Agent.Lifecycle == config.LifecycleMessage:
		return nil, a2aerr.TooLarge("message", "must be smaller to be answered directly")
	case errors.Is(err, queue.ErrTooLarge):
		return s.needTask(ctx, call, m, &executorv1.TaskNeeded{Reason: "too large to be answered directly"})
	case err != nil:
		return nil, err
	}
	switch kind := answer.GetKind().(type) {
	case *executorv1.DirectReply_Message:
		return s.storeReply(ctx, call, m, kind.Message)
	case *executorv1.DirectReply_TaskNeeded:
		return s.needTask(ctx, call, m, kind.TaskNeeded)
	case *executorv1.DirectReply_Failure:
		return nil, directFailure(kind.Failure)
	}
	return nil, a2aerr.InvalidAgentResponse("the agent gave no answer")
}

func (s *Service) find(ctx context.Context, call *admission.Call, m message) (*sent, error) {
	found, err := s.cfg.Store.FindMessage(ctx, &taskstorev1.FindMessageRequest{
		Scope: call.Scope(), MessageId: m.GetMessageId(), Fingerprint: m.fingerprint, HistoryLength: m.historyLength,
	})
	if err != nil || found.GetOutcome() == nil {
		return nil, err
	}
	return result(found, true, m.historyLength), nil
}

func (s *Service) ask(ctx context.Context, call *admission.Call, m message) (*executorv1.DirectReply, error) {
	ctx, done := s.bounded(context.WithoutCancel(ctx), stopPatience)
	defer done()
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Limits.Direct.Value())
	defer cancel()
	answer, err := s.cfg.Executors.Request(ctx, &executorv1.DirectRequest{
		Tenant: call.Tenant, Agent: call.Agent.Name, Message: m.Message, Request: m.request,
	})
	switch {
	case err == nil:
		return answer, nil
	case errors.Is(err, queue.ErrTooLarge):
		return nil, err
	case errors.Is(context.Cause(ctx), ErrStopping):
		return nil, ErrStopping
	case errors.Is(err, queue.ErrNoExecutor):
		return nil, a2aerr.Unavailable("no executor of this agent is connected", retryPause)
	case errors.Is(err, context.DeadlineExceeded):
		return nil, a2aerr.Unavailable("no executor of this agent answered in time", retryPause)
	}
	s.cfg.Logger.WarnContext(ctx, "executors can't be reached", "agent", call.Agent.Name, "error", err)
	return nil, a2aerr.Unavailable("the executors of this agent can't be reached", retryPause)
}

func (s *Service) storeReply(ctx context.Context, call *admission.Call, m message, reply *a2apb.Message) (*sent, error) {
	if reply.GetContextId() == "" {
		reply.ContextId = m.GetContextId()
	}
	if reply.GetContextId() == "" {
		reply.ContextId = task.NewID()
	}
	ctx = context.WithoutCancel(ctx)
	stored, err := s.cfg.Store.StoreReply(ctx, &taskstorev1.StoreReplyRequest{
		Scope: call.Scope(), Message: m.Message, Reply: reply,
		Dedupe: m.fingerprint != nil, Fingerprint: m.fingerprint, HistoryLength: m.historyLength,
	})
	if err != nil {
		return nil, err
	}
	return result(stored, stored.GetDuplicate(), m.historyLength), nil
}

func (s *Service) needTask(ctx context.Context, call *admission.Call, m message, need *executorv1.TaskNeeded) (*sent, error) {
	s.cfg.Logger.InfoContext(ctx, "message becomes a task",
		"agent", call.Agent.Name, "message_id", m.GetMessageId(), "skill", need.GetSkill(), "reason", need.GetReason())
	if call.Agent.Lifecycle == config.LifecycleMessage {
		return nil, a2aerr.InvalidAgentResponse("a task is needed, and this agent answers with Messages only")
	}
	return s.acceptTask(ctx, call, m)
}

func directFailure(f *executorv1.DirectFailure) error {
	switch f.GetKind() {
	case executorv1.DirectFailure_KIND_BUSY:
		return a2aerr.Unavailable("all executors of this agent are busy", retryPause)
	case executorv1.DirectFailure_KIND_REJECTED:
		return a2aerr.UnsupportedOperation(f.GetMessage())
	default:
		return a2aerr.InvalidAgentResponse(f.GetMessage())
	}
}
