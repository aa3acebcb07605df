package grpcbind

import (
	"context"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// newRequest is the request of a streaming method.
func newRequest(method string) proto.Message {
	if method == a2apb.A2AService_SendStreamingMessage_FullMethodName {
		return &a2apb.SendMessageRequest{}
	}
	return &a2apb.SubscribeToTaskRequest{}
}

// admitted is a stream whose context carries its sender, and whose request has been
// read already.
type admitted struct {
	grpc.ServerStream

	ctx     context.Context //nolint:containedctx // that is how gRPC hands it on
	request proto.Message
}

func (a *admitted) Context() context.Context { return a.ctx }

// RecvMsg hands the request over, once.
func (a *admitted) RecvMsg(m any) error {
	to, ok := m.(proto.Message)
	if !ok || a.request == nil {
		return a.ServerStream.RecvMsg(m)
	}
	a.request.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		to.ProtoReflect().Set(field, value)
		return true
	})
	a.request = nil
	return nil
}
