// Package direct answers the direct Messages of one agent.
package direct

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/queue"
	"github.com/errandhq/errand/pkg/telemetry"
	executorv1 "github.com/errandhq/errand/proto/gen/errand/executor/v1"
	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Config says whose messages are answered.
type Config struct {
	Agent    agent.Agent
	Settings *config.Agent
	Memory   agent.Memory
	// Encoded size that no answer may exceed.
	MaxEventBytes int
	Tracer        trace.Tracer
	Logger        *slog.Logger
}

// New returns a responder that isn't listening yet. It has slots of its own, so
// that long tasks don't keep a quick answer waiting.
func New(nc *nats.Conn, cfg Config) (*queue.Responder, error) {
	responder, err := queue.NewResponder(nc, queue.ResponderConfig{
		Agent: cfg.Agent.Name, Limit: cfg.Settings.DirectConcurrency, Handler: cfg.answer, Logger: cfg.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("answer direct Messages: %w", err)
	}
	return responder, nil
}

func (cfg Config) answer(ctx context.Context, req *executorv1.DirectRequest) *executorv1.DirectReply {
	ctx, span := cfg.Tracer.Start(ctx, telemetry.SpanAnswer, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String(telemetry.AttrTenant, req.GetTenant()),
		attribute.String(telemetry.AttrAgent, req.GetAgent()),
		attribute.String(telemetry.AttrMessageID, req.GetMessage().GetMessageId()),
		attribute.String(telemetry.AttrContextID, req.GetMessage().GetContextId()),
	))
	defer span.End()
	reply := agent.Direct{
		Agent: cfg.Agent, Proto: req, Memory: cfg.Memory, TaskReason: cfg.taskReason,
		MaxEventBytes: cfg.MaxEventBytes, Logger: cfg.Logger,
	}.Answer(ctx)
	span.SetAttributes(attribute.String(telemetry.AttrOutcome, outcome(reply)))
	return reply
}

// taskReason tells why a message for a skill must be a task: because of what the
// agents file says of the skill, or because it says nothing.
func (cfg Config) taskReason(skill string) string {
	if cfg.Settings.Lifecycle == config.LifecycleMessage {
		return ""
	}
	conditions, known := cfg.Settings.TaskWhen(skill)
	if !known {
		return fmt.Sprintf("skill %q has no rule", skill)
	}
	names := make([]string, len(conditions))
	for i, c := range conditions {
		names[i] = string(c)
	}
	return strings.Join(names, ", ")
}

func outcome(reply *executorv1.DirectReply) string {
	switch {
	case reply.GetMessage() != nil:
		return "message"
	case reply.GetTaskNeeded() != nil:
		return "task_needed"
	default:
		return "failed"
	}
}
