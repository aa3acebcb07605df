package jsonrpc

import (
	"context"
	"net/http"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/a2ajson"
	"github.com/errandhq/errand/services/gateway/internal/admission"
	"github.com/errandhq/errand/services/gateway/internal/failure"
	"github.com/errandhq/errand/services/gateway/internal/httpbind"
	"github.com/errandhq/errand/services/gateway/internal/load"
	"github.com/errandhq/errand/services/gateway/internal/operation"
)

const sendStreamingMessage = "SendStreamingMessage"

// serve chooses the operation (A2A §9.4).
func (x *exchange) serve() {
	s := x.Operations
	switch x.request.Method {
	case "SendMessage":
		call(x, &a2apb.SendMessageRequest{}, s.SendMessage)
	case sendStreamingMessage:
		stream(x, &a2apb.SendMessageRequest{}, s.StreamMessage)
	case "GetTask":
		call(x, &a2apb.GetTaskRequest{}, s.GetTask)
	case "ListTasks":
		call(x, &a2apb.ListTasksRequest{}, s.ListTasks)
	case "CancelTask":
		call(x, &a2apb.CancelTaskRequest{}, s.CancelTask)
	case "SubscribeToTask":
		stream(x, &a2apb.SubscribeToTaskRequest{}, s.Subscribe)
	case "CreateTaskPushNotificationConfig":
		call(x, &a2apb.TaskPushNotificationConfig{}, s.CreateTaskPushNotificationConfig)
	case "GetTaskPushNotificationConfig":
		call(x, &a2apb.GetTaskPushNotificationConfigRequest{}, s.GetTaskPushNotificationConfig)
	case "ListTaskPushNotificationConfigs":
		call(x, &a2apb.ListTaskPushNotificationConfigsRequest{}, s.ListTaskPushNotificationConfigs)
	case "DeleteTaskPushNotificationConfig":
		call(x, &a2apb.DeleteTaskPushNotificationConfigRequest{}, s.DeleteTaskPushNotificationConfig)
	case "GetExtendedAgentCard":
		call(x, &a2apb.GetExtendedAgentCardRequest{}, s.GetExtendedAgentCard)
	default:
		x.fail(a2aerr.MethodNotFound(x.request.Method))
	}
}

// call serves a unary operation.
func call[Request, Response proto.Message](x *exchange, r Request, op func(context.Context, Request) (Response, error)) {
	if err := x.params(r); err != nil {
		x.fail(err)
		return
	}
	response, err := op(x.ctx(), r)
	if err != nil {
		x.fail(err)
		return
	}
	body, err := x.request.result(response)
	if err != nil {
		x.fail(err)
		return
	}
	done, err := load.Answer(x.ctx(), len(body))
	if err != nil {
		x.fail(err)
		return
	}
	defer done()
	x.written(httpbind.Respond(x.w, http.StatusOK, httpbind.JSON, body))
}

// stream serves a streaming operation.
func stream[Request proto.Message](x *exchange, r Request, op func(context.Context, Request, int64) (*operation.Stream, error)) {
	if err := x.params(r); err != nil {
		x.fail(err)
		return
	}
	updates, err := op(x.ctx(), r, httpbind.LastEventID(x.r))
	if err != nil {
		x.fail(err)
		return
	}
	httpbind.ServeStream(x.w, x.r, updates, httpbind.Frames{
		Update: func(u *a2apb.StreamResponse) ([]byte, error) { return x.request.result(u) },
		Error: func(err error) ([]byte, error) {
			return x.request.failure(failure.Report(x.ctx(), x.Logger, x.request.Method, err))
		},
	}, x.Limits)
}

// params reads the parameters. They are valid JSON already, so what is wrong
// with them is never a parse error.
func (x *exchange) params(m proto.Message) error {
	err := a2ajson.Unmarshal(x.request.Params, m, a2ajson.Limits{Depth: x.Limits.Depth, Values: x.Limits.Values})
	if err != nil {
		return admission.Refused(x.ctx(), err)
	}
	x.request.Params = nil // which a request that waits would keep
	return nil
}
