package notifier

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	notifierv1 "github.com/errandhq/errand/proto/gen/errand/notifier/v1"

	"github.com/errandhq/errand/services/notifier/internal/hub"
)

// server is the gRPC side of the hub.
type server struct {
	notifierv1.UnimplementedNotifierServiceServer

	hub *hub.Hub
}

type watchStream = grpc.BidiStreamingServer[notifierv1.WatchRequest, notifierv1.WatchResponse]

// errDone says that the gateway has closed its side in good order.
var errDone = errors.New("the gateway has left")

// Watch implements notifierv1.NotifierServiceServer. One goroutine takes
// requests while this one sends; it ends with the stream's context.
func (s *server) Watch(stream watchStream) error {
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	watches := s.hub.Open()
	defer watches.Close()
	go func() { cancel(receive(stream, watches)) }()
	return toStatus(ctx, send(ctx, stream, watches))
}

func receive(stream watchStream, watches *hub.Stream) error {
	for {
		request, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return errDone
		case err != nil:
			return err
		}
		switch kind := request.GetKind().(type) {
		case *notifierv1.WatchRequest_Watch:
			w := kind.Watch
			if err := watches.Watch(request.GetWatchId(), w.GetTenant(), w.GetTaskId(), w.GetAfter()); err != nil {
				return status.Error(codes.InvalidArgument, err.Error())
			}
		case *notifierv1.WatchRequest_Unwatch:
			watches.Unwatch(request.GetWatchId())
		}
	}
}

func send(ctx context.Context, stream watchStream, watches *hub.Stream) error {
	for {
		responses, err := watches.Next(ctx)
		if err != nil {
			return err
		}
		for _, response := range responses {
			if err := stream.Send(response); err != nil {
				return err
			}
		}
	}
}

// toStatus says how a stream ended. The receiver's word is in the context.
func toStatus(ctx context.Context, err error) error {
	if errors.Is(err, hub.ErrStopped) {
		return status.Error(codes.Unavailable, err.Error())
	}
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, errDone):
		return nil
	case cause != nil:
		return cause
	}
	return err
}
