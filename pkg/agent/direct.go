package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	executorv1 "github.com/errandhq/errand/proto/gen/errand/executor/v1"
	"google.golang.org/protobuf/proto"
)

var errNotAnswered = errors.New("handler returned without an answer")

// Direct is a message for [Agent.Messages] and what handling it needs.
// Executors make it; authors of agents don't.
type Direct struct {
	Agent  Agent
	Proto  *executorv1.DirectRequest
	Memory Memory
	// Why a message for a skill must become a task; empty if it needn't.
	TaskReason func(skill string) string
	// Encoded size that no answer may exceed.
	MaxEventBytes int
	Logger        *slog.Logger
}

func (d Direct) request() *Request {
	m := d.Proto.GetMessage()
	r := &Request{
		proto: d.Proto,
		logger: d.Logger.With("tenant", d.Proto.GetTenant(), "agent", d.Agent.Name,
			"message_id", m.GetMessageId(), "context_id", m.GetContextId()),
		lookup: lookup{memory: d.Memory, tenant: d.Proto.GetTenant(), agent: d.Agent.Name},
	}
	r.lookup.message = func() *eventv1.UserMessage {
		return &eventv1.UserMessage{Message: m, Request: d.Proto.GetRequest()}
	}
	r.remember(d.Proto.GetRequest().GetSubject(), m.GetContextId(), "")
	return r
}

// Answer asks the agent for the skill, the agents file whether that must be a
// task, and if it needn't, the agent for the answer.
func (d Direct) Answer(ctx context.Context) *executorv1.DirectReply {
	r := d.request()
	skill, err := d.route(ctx, r)
	if err != nil {
		return r.fail(ctx, err)
	}
	answer := d.answer(ctx, r, skill)
	if needed := answer.GetTaskNeeded(); needed != nil {
		needed.Skill = skill
	}
	return answer
}

func (d Direct) answer(ctx context.Context, r *Request, skill string) *executorv1.DirectReply {
	if reason := d.TaskReason(skill); reason != "" {
		return taskNeeded(reason)
	}
	if d.Agent.Messages == nil {
		return taskNeeded("the agent answers by tasks alone")
	}
	err := protect(func() error { return d.Agent.Messages.HandleMessage(ctx, r) })
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.answer == nil && err == nil:
		return r.fail(ctx, errNotAnswered)
	case r.answer == nil:
		return r.fail(ctx, err)
	case err != nil:
		r.logger.WarnContext(ctx, "handler failed after it had answered", "error", err)
	}
	if size := proto.Size(r.answer); size > d.MaxEventBytes {
		return r.fail(ctx, fmt.Errorf("%w: an answer of %d bytes, at most %d", ErrTooLarge, size, d.MaxEventBytes))
	}
	return r.answer
}

func (d Direct) route(ctx context.Context, r *Request) (string, error) {
	if d.Agent.Router == nil {
		return "", nil
	}
	var skill string
	err := protect(func() error {
		var err error
		skill, err = d.Agent.Router.Route(ctx, r)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("route message: %w", err)
	}
	return skill, nil
}
