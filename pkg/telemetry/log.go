package telemetry

import (
	"context"
	"io"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// NewLogger returns the logger of a process: JSON lines, each with the trace of
// the context that it was logged with.
func NewLogger(w io.Writer, level slog.Leveler) *slog.Logger {
	return slog.New(WithTrace(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})))
}

// WithTrace returns a handler that adds trace_id and span_id to the records of
// another.
func WithTrace(next slog.Handler) slog.Handler { return traceHandler{next} }

type traceHandler struct{ slog.Handler }

func (h traceHandler) Handle(ctx context.Context, record slog.Record) error {
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		record = record.Clone()
		record.AddAttrs(slog.String(LogTraceID, span.TraceID().String()), slog.String(LogSpanID, span.SpanID().String()))
	}
	return h.Handler.Handle(ctx, record)
}

func (h traceHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return traceHandler{h.Handler.WithAttrs(attrs)}
}

func (h traceHandler) WithGroup(name string) slog.Handler {
	return traceHandler{h.Handler.WithGroup(name)}
}
