package rpcserver

import (
	"context"

	"github.com/errandhq/errand/pkg/telemetry"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/store"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/proto"
)

// call runs one operation for one request.
func call[Request proto.Message, Answer any](
	ctx context.Context, r Request, operation func(context.Context, Request) (Answer, error),
) (Answer, error) {
	annotate(ctx, r)
	answer, err := operation(ctx, r)
	return answer, public(err)
}

// one runs an operation that takes many requests for one.
func one[Request proto.Message, Answer any](
	ctx context.Context, r Request, operation func(context.Context, []Request) []store.Result[Answer],
) (Answer, error) {
	annotate(ctx, r)
	result := operation(ctx, []Request{r})[0]
	return result.Value, public(result.Err)
}

// annotate puts on the call's span what the call is about.
func annotate(ctx context.Context, r proto.Message) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	if of, ok := r.(interface{ GetTaskId() string }); ok {
		span.SetAttributes(attribute.String(telemetry.AttrTaskID, of.GetTaskId()))
	}
	if of, ok := r.(interface{ GetContextId() string }); ok {
		span.SetAttributes(attribute.String(telemetry.AttrContextID, of.GetContextId()))
	}
	if of, ok := r.(interface{ GetScope() *taskstorev1.Scope }); ok {
		span.SetAttributes(
			attribute.String(telemetry.AttrTenant, of.GetScope().GetTenant()),
			attribute.String(telemetry.AttrAgent, of.GetScope().GetAgent()),
		)
	}
	if of, ok := r.(*taskstorev1.AcceptMessageRequest); ok {
		span.SetAttributes(
			attribute.String(telemetry.AttrMessageID, of.GetMessage().GetMessageId()),
			attribute.String(telemetry.AttrTaskID, of.GetMessage().GetTaskId()),
		)
	}
}
