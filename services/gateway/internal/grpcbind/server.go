// Package grpcbind is the gRPC binding (A2A §10).
package grpcbind

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/services/gateway/internal/admission"
	"github.com/errandhq/errand/services/gateway/internal/operation"
)

// Config is what the binding works with.
type Config struct {
	Gate       *admission.Gate
	Operations *operation.Service
	Limits     config.Limits
	Logger     *slog.Logger
}

// NewServer returns a server of the binding. Clients may ping often and while
// they are idle: long streams depend on it behind load balancers that close
// quiet connections, and the server pings as well.
func NewServer(cfg Config) *grpc.Server {
	around := interceptor{gate: cfg.Gate, logger: cfg.Logger}
	server := grpc.NewServer(
		grpc.MaxRecvMsgSize(cfg.Limits.Body),
		grpc.StatsHandler(otelgrpc.NewServerHandler()),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 20 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.UnaryInterceptor(around.unary),
		grpc.StreamInterceptor(around.stream),
	)
	a2apb.RegisterA2AServiceServer(server, service{cfg.Operations})
	return server
}

// service adds to the operations what gRPC does its own way.
type service struct{ *operation.Service }

// ListTasks takes a page size of 0 as unset: the official Go client always sets it.
func (s service) ListTasks(ctx context.Context, r *a2apb.ListTasksRequest) (*a2apb.ListTasksResponse, error) {
	if r.GetPageSize() == 0 {
		r.PageSize = nil
	}
	return s.Service.ListTasks(ctx, r)
}

func (s service) SendStreamingMessage(r *a2apb.SendMessageRequest, out grpc.ServerStreamingServer[a2apb.StreamResponse]) error {
	stream, err := s.StreamMessage(out.Context(), r, operation.Anew)
	if err != nil {
		return err
	}
	return forward(stream, out)
}

func (s service) SubscribeToTask(r *a2apb.SubscribeToTaskRequest, out grpc.ServerStreamingServer[a2apb.StreamResponse]) error {
	stream, err := s.Subscribe(out.Context(), r, operation.Anew)
	if err != nil {
		return err
	}
	return forward(stream, out)
}

// forward sends a stream to its end. A client that doesn't read holds up its own
// stream alone: what it misses meanwhile comes as a snapshot.
func forward(stream *operation.Stream, out grpc.ServerStreamingServer[a2apb.StreamResponse]) error {
	defer stream.Close()
	for {
		update, err := stream.Next(out.Context())
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := out.Send(update.Response); err != nil {
			return err
		}
	}
}
