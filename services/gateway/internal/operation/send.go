package operation

import (
	"context"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/proto"

	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/pkg/telemetry"
	"github.com/errandhq/errand/services/gateway/internal/admission"
	"github.com/errandhq/errand/services/gateway/internal/validate"
)

// SendMessage accepts a message and answers with a direct Message or a task: at
// once if the sender says so, else when the task is settled (A2A §3.1.1, §3.2.2).
func (s *Service) SendMessage(ctx context.Context, r *a2apb.SendMessageRequest) (*a2apb.SendMessageResponse, error) {
	call, err := s.admitSend(ctx, r)
	if err != nil {
		return nil, err
	}
	blocking := !r.GetConfiguration().GetReturnImmediately()
	if blocking {
		if !s.waits.TryAcquire(1) {
			return nil, a2aerr.Unavailable("too many requests are waiting", retryPause)
		}
		defer s.waits.Release(1)
	}
	sent, err := s.accept(ctx, call, r)
	if err != nil {
		return nil, err
	}
	if sent.reply != nil {
		return &a2apb.SendMessageResponse{Payload: &a2apb.SendMessageResponse_Message{Message: sent.reply}}, nil
	}
	if blocking {
		if err := s.settle(ctx, call, sent); err != nil {
			return nil, err
		}
	}
	return &a2apb.SendMessageResponse{Payload: &a2apb.SendMessageResponse_Task{Task: sent.task}}, nil
}

// admitSend does what comes before anything is accepted.
func (s *Service) admitSend(
	ctx context.Context, r *a2apb.SendMessageRequest, capabilities ...func(*admission.Call) error,
) (*admission.Call, error) {
	call, err := admission.Route(ctx, r.GetTenant(), r.GetMessage().GetTaskId())
	if err != nil {
		return nil, err
	}
	for _, declared := range capabilities {
		if err := declared(call); err != nil {
			return nil, err
		}
	}
	if r.GetConfiguration().GetTaskPushNotificationConfig() != nil {
		return nil, a2aerr.PushNotificationNotSupported()
	}
	if err := validate.Send(r, s.cfg.Limits); err != nil {
		return nil, err
	}
	if call.Agent.InputModes.On() {
		if err := validate.MediaTypes(r.GetMessage().GetParts(), call.Agent.Card.AgentCard); err != nil {
			return nil, err
		}
	}
	return call, nil
}

// sent is what became of a message: a reply or a task.
type sent struct {
	reply *a2apb.Message

	task    *a2apb.Task
	version int64
	// The message was accepted at this version.
	accepted  int64
	duplicate bool
	// Of the request, for reading the task again.
	historyLength *int32
}

// outcome is what the store's answers to a message have in common.
type outcome interface {
	GetTask() *a2apb.Task
	GetReply() *a2apb.Message
	GetVersion() int64
	GetAcceptedVersion() int64
}

func result(o outcome, duplicate bool, historyLength *int32) *sent {
	return &sent{
		reply: o.GetReply(), task: o.GetTask(), version: o.GetVersion(), accepted: o.GetAcceptedVersion(),
		duplicate: duplicate, historyLength: historyLength,
	}
}

// accept makes the message a direct exchange or a task. Only a first message to
// an agent whose lifecycle allows it can be answered directly. The request is empty
// afterwards, so that nobody who waits for the task keeps what was sent.
func (s *Service) accept(ctx context.Context, call *admission.Call, r *a2apb.SendMessageRequest) (*sent, error) {
	defer proto.Reset(r)
	m := message{Message: r.GetMessage(), request: requestInfo(ctx, call, r), historyLength: historyLength(r)}
	if call.Agent.Dedupe.On() {
		m.fingerprint = task.Fingerprint(r.GetMessage())
	}
	if call.Agent.Lifecycle == config.LifecycleTask || r.GetMessage().GetTaskId() != "" {
		return s.acceptTask(ctx, call, m)
	}
	return s.acceptDirect(ctx, call, m)
}

// message is a sender's message with what the store and executors need beside it.
type message struct {
	*a2apb.Message

	request *eventv1.RequestInfo
	// Nil when the agent doesn't de-duplicate.
	fingerprint   []byte
	historyLength *int32
}

func (s *Service) acceptTask(ctx context.Context, call *admission.Call, m message) (*sent, error) {
	ctx = context.WithoutCancel(ctx)
	accepted, err := s.cfg.Store.AcceptMessage(ctx, &taskstorev1.AcceptMessageRequest{
		Scope:         call.Scope(),
		Message:       m.Message,
		Request:       m.request,
		NewTaskId:     task.NewID(),
		NewContextId:  task.NewID(),
		Dedupe:        m.fingerprint != nil,
		Fingerprint:   m.fingerprint,
		WhileRunning:  followUps(call.Agent),
		HistoryLength: m.historyLength,
	})
	if err != nil {
		return nil, err
	}
	trace.SpanFromContext(ctx).SetAttributes(
		attribute.String(telemetry.AttrTaskID, accepted.GetTask().GetId()), attribute.String(telemetry.AttrMessageID, m.GetMessageId()))
	return result(accepted, accepted.GetDuplicate(), m.historyLength), nil
}

func followUps(agent *config.Agent) taskstorev1.FollowUpPolicy {
	if agent.FollowUps == config.FollowUpsRefuse {
		return taskstorev1.FollowUpPolicy_FOLLOW_UP_POLICY_REFUSE
	}
	return taskstorev1.FollowUpPolicy_FOLLOW_UP_POLICY_APPEND
}

func requestInfo(ctx context.Context, call *admission.Call, r *a2apb.SendMessageRequest) *eventv1.RequestInfo {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return &eventv1.RequestInfo{
		Subject:             call.Subject,
		AcceptedOutputModes: r.GetConfiguration().GetAcceptedOutputModes(),
		Metadata:            r.GetMetadata(),
		Extensions:          call.Extensions,
		Traceparent:         carrier["traceparent"],
		Tracestate:          carrier["tracestate"],
	}
}

func historyLength(r *a2apb.SendMessageRequest) *int32 {
	if c := r.GetConfiguration(); c != nil {
		return c.HistoryLength
	}
	return nil
}
