package worker

import (
	"context"
	"time"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/pkg/natsconn"
	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/pkg/telemetry"
	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// turn runs the handler of a claimed task, after the run before and before the
// next one. Of a handler that was left behind it returns what is closed at its end.
func (w *Worker) turn(claim *taskstorev1.Claim, begun time.Time, before <-chan struct{}, leave func()) <-chan struct{} {
	defer leave()
	ctx, links := w.origin(claim)
	ctx, span := w.cfg.Tracer.Start(ctx, telemetry.SpanHandle, trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithLinks(links...), trace.WithAttributes(w.attributes(claim)...))
	defer span.End()
	held := w.cfg.Leases.Hold(ctx, claim, begun, w.cfg.Settings.Lease.Value())
	defer held.Close()

	ctx, stop := context.WithCancelCause(held.Context())
	defer stop(nil)
	defer context.AfterFunc(w.draining, func() { stop(agent.ErrDraining) })()
	w.await(ctx, before)
	timer := time.AfterFunc(w.left(claim), func() { stop(agent.ErrMaxRuntime) })
	defer timer.Stop()

	outcome := agent.Claim{
		Agent: w.cfg.Agent, Proto: claim, Lease: held, Store: w.cfg.Store, Logger: w.cfg.Logger,
		MaxEventBytes: w.cfg.MaxEventBytes, Patience: w.cfg.Patience,
	}.Run(ctx)
	w.report(ctx, span, claim, outcome, time.Since(begun))
	return outcome.Abandoned
}

// await waits for the task's run before to return, under the lease of the new
// one, but not for a handler that doesn't.
func (w *Worker) await(ctx context.Context, before <-chan struct{}) {
	if before == nil {
		return
	}
	patience := time.NewTimer(w.cfg.Patience)
	defer patience.Stop()
	select {
	case <-before:
	case <-patience.C:
	case <-ctx.Done():
	}
}

// left is how long the turn may still run: all its attempts share the time. The
// store says how much of it is over, since the clock of this machine may be another.
func (w *Worker) left(claim *taskstorev1.Claim) time.Duration {
	return w.cfg.Settings.MaxRuntime.Value() - claim.GetTurnAge().AsDuration()
}

// origin is the trace of the newest message, and links to those of the others
// that the turn is about.
func (w *Worker) origin(claim *taskstorev1.Claim) (context.Context, []trace.Link) {
	messages := claim.GetMessages()
	if len(messages) == 0 {
		return w.life, nil
	}
	var links []trace.Link
	newest := len(messages) - 1
	for _, m := range messages[:newest] {
		if m.GetVersion() > claim.GetHandledVersion() {
			links = append(links, trace.LinkFromContext(w.sender(m)))
		}
	}
	return w.sender(messages[newest]), links
}

func (w *Worker) sender(m *eventv1.UserMessage) context.Context {
	return natsconn.TraceContext(w.life, m.GetRequest().GetTraceparent())
}

func (w *Worker) attributes(claim *taskstorev1.Claim) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String(telemetry.AttrTenant, claim.GetTenant()),
		attribute.String(telemetry.AttrAgent, w.cfg.Agent.Name),
		attribute.String(telemetry.AttrTaskID, claim.GetTask().GetId()),
		attribute.String(telemetry.AttrContextID, claim.GetTask().GetContextId()),
		attribute.Int64(telemetry.AttrLeaseEpoch, claim.GetLeaseEpoch()),
		attribute.Int(telemetry.AttrAttempt, int(claim.GetAttempt())),
	}
}

// report is the one place that tells how claims ended.
func (w *Worker) report(ctx context.Context, span trace.Span, claim *taskstorev1.Claim, o agent.Outcome, took time.Duration) {
	state := o.State.String()
	span.SetAttributes(attribute.String(telemetry.AttrOutcome, o.String()), attribute.String(telemetry.AttrTaskState, state))
	if o.State == task.Failed || o.Err != nil {
		span.SetStatus(codes.Error, o.String())
	}
	w.cfg.Metrics.turnEnded(ctx, w.cfg.Agent.Name, o, took)
	logger := w.cfg.Logger.With("task_id", claim.GetTask().GetId(), "context_id", claim.GetTask().GetContextId(),
		"tenant", claim.GetTenant(), "agent", w.cfg.Agent.Name, "lease_epoch", claim.GetLeaseEpoch(),
		"attempt", claim.GetAttempt(), "outcome", o.String(), "duration", took)
	switch {
	case o.String() == "lost":
		logger.WarnContext(ctx, "claim ended without a settled turn", "error", o.Err)
	case o.Err != nil || o.Released:
		logger.InfoContext(ctx, "claim ended without a settled turn")
	default:
		logger.DebugContext(ctx, "turn settled", "state", state)
	}
}
