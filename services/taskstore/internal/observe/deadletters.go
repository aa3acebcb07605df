package observe

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/errandhq/errand/pkg/telemetry"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// deadLetters tells of dead letters that were committed, and of those that were
// redriven: a count by agent and reason, and a line in the log with the ids.
type deadLetters struct {
	logger   *slog.Logger
	made     metric.Int64Counter
	redriven metric.Int64Counter
}

func newDeadLetters(logger *slog.Logger, meter metric.Meter) (*deadLetters, error) {
	made, err := meter.Int64Counter(telemetry.MetricDeadLetters,
		metric.WithUnit("{task}"), metric.WithDescription("Tasks that were given up"))
	if err != nil {
		return nil, fmt.Errorf("make %s: %w", telemetry.MetricDeadLetters, err)
	}
	redriven, err := meter.Int64Counter(telemetry.MetricRedriven,
		metric.WithUnit("{task}"), metric.WithDescription("Dead letters that became a new task"))
	if err != nil {
		return nil, fmt.Errorf("make %s: %w", telemetry.MetricRedriven, err)
	}
	return &deadLetters{logger: logger, made: made, redriven: redriven}, nil
}

func (d *deadLetters) committed(ctx context.Context, changes *engine.Changes) {
	if changes == nil {
		return
	}
	for _, l := range changes.DeadLetters {
		d.made.Add(ctx, 1, labels(l))
		d.logger.WarnContext(ctx, "task given up", append(fields(l), "attempts", l.Attempts, "holder", l.LastHolder)...)
	}
	for _, l := range changes.RedriveDeadLetters {
		d.redriven.Add(ctx, 1, labels(l))
		d.logger.InfoContext(ctx, "dead letter redriven", append(fields(l), "new_task_id", l.Redrive.TaskID, "by", l.Redrive.By)...)
	}
}

func labels(l engine.DeadLetter) metric.AddOption {
	return metric.WithAttributes(
		attribute.String(telemetry.AttrAgent, l.Agent), attribute.String(telemetry.AttrReason, l.Reason))
}

func fields(l engine.DeadLetter) []any {
	return []any{
		telemetry.LogTaskID, l.TaskID, telemetry.LogContextID, l.ContextID, telemetry.LogTenant, l.Tenant,
		telemetry.LogAgent, l.Agent, "reason", l.Reason,
	}
}
