package observe

import (
	"context"

	"github.com/errandhq/errand/pkg/telemetry"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// ReadTasks implements engine.Reader.
func (e *Engine) ReadTasks(
	ctx context.Context, scope engine.Scope, ids []string, detail engine.Detail,
) ([]*engine.Snapshot, error) {
	return observed(ctx, e, "read_tasks", func(ctx context.Context) ([]*engine.Snapshot, error) {
		return e.Engine.ReadTasks(ctx, scope, ids, detail)
	}, trace.WithAttributes(attribute.StringSlice(telemetry.AttrTaskID, ids)))
}

// ListTasks implements engine.Reader.
func (e *Engine) ListTasks(ctx context.Context, q engine.ListQuery) ([]*engine.Snapshot, error) {
	return observed(ctx, e, "list_tasks", func(ctx context.Context) ([]*engine.Snapshot, error) {
		return e.Engine.ListTasks(ctx, q)
	})
}

// CountTasks implements engine.Reader.
func (e *Engine) CountTasks(ctx context.Context, q engine.ListQuery, atMost int) (int, error) {
	return observed(ctx, e, "count_tasks", func(ctx context.Context) (int, error) {
		return e.Engine.CountTasks(ctx, q, atMost)
	})
}

// ReadHeads implements engine.Reader.
func (e *Engine) ReadHeads(ctx context.Context, refs []engine.TaskRef) ([]engine.Head, error) {
	return observed(ctx, e, "read_heads", func(ctx context.Context) ([]engine.Head, error) {
		return e.Engine.ReadHeads(ctx, refs)
	}, trace.WithAttributes(attribute.Int(telemetry.AttrMessageCount, len(refs))))
}

// ReadEvents implements engine.Reader.
func (e *Engine) ReadEvents(
	ctx context.Context, scope engine.Scope, id string, after int64, limit int,
) ([]engine.Event, engine.Head, error) {
	type log struct {
		events []engine.Event
		head   engine.Head
	}
	l, err := observed(ctx, e, "read_events", func(ctx context.Context) (l log, err error) {
		l.events, l.head, err = e.Engine.ReadEvents(ctx, scope, id, after, limit)
		return l, err
	}, trace.WithAttributes(attribute.String(telemetry.AttrTaskID, id)))
	return l.events, l.head, err
}

// ReadUserMessages implements engine.Reader.
func (e *Engine) ReadUserMessages(ctx context.Context, ref engine.TaskRef, after int64) ([]engine.Message, error) {
	return observed(ctx, e, "read_user_messages", func(ctx context.Context) ([]engine.Message, error) {
		return e.Engine.ReadUserMessages(ctx, ref, after)
	}, trace.WithAttributes(attribute.String(telemetry.AttrTaskID, ref.ID)))
}

// ReadDedupe implements engine.Reader.
func (e *Engine) ReadDedupe(ctx context.Context, key engine.DedupeKey) (engine.Dedupe, error) {
	return observed(ctx, e, "read_dedupe", func(ctx context.Context) (engine.Dedupe, error) {
		return e.Engine.ReadDedupe(ctx, key)
	}, trace.WithAttributes(attribute.String(telemetry.AttrMessageID, key.MessageID)))
}

// ReadDirect implements engine.Reader.
func (e *Engine) ReadDirect(ctx context.Context, tenant, id string) (engine.Direct, error) {
	return observed(ctx, e, "read_direct", func(ctx context.Context) (engine.Direct, error) {
		return e.Engine.ReadDirect(ctx, tenant, id)
	})
}

// ReadContext implements engine.Reader.
func (e *Engine) ReadContext(ctx context.Context, key engine.ContextKey) (*engine.Context, error) {
	return observed(ctx, e, "read_context", func(ctx context.Context) (*engine.Context, error) {
		return e.Engine.ReadContext(ctx, key)
	}, trace.WithAttributes(attribute.String(telemetry.AttrContextID, key.ContextID)))
}

// ReadTurns implements engine.Reader.
func (e *Engine) ReadTurns(ctx context.Context, key engine.ContextKey, limit int) ([]engine.Turn, error) {
	return observed(ctx, e, "read_turns", func(ctx context.Context) ([]engine.Turn, error) {
		return e.Engine.ReadTurns(ctx, key, limit)
	}, trace.WithAttributes(attribute.String(telemetry.AttrContextID, key.ContextID)))
}
