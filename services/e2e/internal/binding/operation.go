package binding

import (
	"fmt"
	"net/http"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Op is an operation by its name as an RPC and JSON-RPC method (A2A §5.3).
type Op string

// The eleven operations.
const (
	SendMessage          Op = "SendMessage"
	SendStreamingMessage Op = "SendStreamingMessage"
	GetTask              Op = "GetTask"
	ListTasks            Op = "ListTasks"
	CancelTask           Op = "CancelTask"
	SubscribeToTask      Op = "SubscribeToTask"
	CreatePushConfig     Op = "CreateTaskPushNotificationConfig"
	GetPushConfig        Op = "GetTaskPushNotificationConfig"
	ListPushConfigs      Op = "ListTaskPushNotificationConfigs"
	DeletePushConfig     Op = "DeleteTaskPushNotificationConfig"
	GetExtendedAgentCard Op = "GetExtendedAgentCard"
)

// route is where an operation lives on HTTP+JSON. Path members in braces are
// JSON names of the request; body tells whether the rest travels in the body
// instead of the query.
type route struct {
	method string
	path   string
	body   bool
}

var routes = map[Op]route{
	SendMessage:          {http.MethodPost, "/message:send", true},
	SendStreamingMessage: {http.MethodPost, "/message:stream", true},
	GetTask:              {http.MethodGet, "/tasks/{id}", false},
	ListTasks:            {http.MethodGet, "/tasks", false},
	CancelTask:           {http.MethodPost, "/tasks/{id}:cancel", true},
	SubscribeToTask:      {http.MethodPost, "/tasks/{id}:subscribe", true},
	CreatePushConfig:     {http.MethodPost, "/tasks/{taskId}/pushNotificationConfigs", true},
	GetPushConfig:        {http.MethodGet, "/tasks/{taskId}/pushNotificationConfigs/{id}", false},
	ListPushConfigs:      {http.MethodGet, "/tasks/{taskId}/pushNotificationConfigs", false},
	DeletePushConfig:     {http.MethodDelete, "/tasks/{taskId}/pushNotificationConfigs/{id}", false},
	GetExtendedAgentCard: {http.MethodGet, "/extendedAgentCard", false},
}

func (op Op) rpc() string { return "/lf.a2a.v1.A2AService/" + string(op) }

// output is an empty message of the type that op answers with.
func (op Op) output() (proto.Message, error) {
	service := a2apb.File_a2av1_proto.Services().ByName("A2AService")
	method := service.Methods().ByName(protoreflect.Name(op))
	if method == nil {
		return nil, fmt.Errorf("A2AService has no %s", op)
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByName(method.Output().FullName())
	if err != nil {
		return nil, fmt.Errorf("find what %s answers: %w", op, err)
	}
	return kind.New().Interface(), nil
}
