package storefake

import (
	"context"
	"path"

	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Conn is a connection to the store.
func (s *Store) Conn() grpc.ClientConnInterface { return conn{s} }

type conn struct{ s *Store }

// Invoke calls the method of that name.
func (c conn) Invoke(ctx context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	var answer proto.Message
	var err error
	switch q := args.(type) {
	case *taskstorev1.ClaimTasksRequest:
		answer, err = c.s.ClaimTasks(ctx, q)
	case *taskstorev1.RenewLeasesRequest:
		answer, err = c.s.RenewLeases(ctx, q)
	case *taskstorev1.ReleaseTasksRequest:
		answer, err = c.s.ReleaseTasks(ctx, q)
	case *taskstorev1.WriteEventsRequest:
		answer, err = c.s.WriteEvents(ctx, q)
	case *taskstorev1.ListUserMessagesRequest:
		answer, err = c.s.ListUserMessages(ctx, q)
	case *taskstorev1.GetInfoRequest:
		answer, err = c.s.GetInfo(ctx, q)
	default:
		return status.Error(codes.Unimplemented, path.Base(method))
	}
	if err != nil {
		return err
	}
	proto.Merge(reply.(proto.Message), answer) //nolint:forcetypeassert // generated code passes messages
	return nil
}

// NewStream opens none: executors have no streams.
func (c conn) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, status.Error(codes.Unimplemented, "stream")
}
