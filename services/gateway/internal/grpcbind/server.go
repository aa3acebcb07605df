// Package grpcbind is the gRPC binding (A2A §10).
package grpcbind

import (
	"context"
	"errors"
	"io"
	"log/slog"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc"

	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/rpc"
	"github.com/errandhq/errand/pkg/telemetry"
	"github.com/errandhq/errand/services/gateway/internal/admission"
	"github.com/errandhq/errand/services/gateway/internal/load"
	"github.com/errandhq/errand/services/gateway/internal/operation"
)

// Config is what the binding works with.
type Config struct {
	// Addr is the address to listen on.
	Addr       string
	Gate       *admission.Gate
	Load       *load.Limit
	Operations *operation.Service
	Limits     config.Limits
	Logger     *slog.Logger
	Telemetry  *telemetry.Telemetry
}

// slack is how much more than allowed is read of a request, so that its refusal can
// have an ErrorInfo. Whatever is larger still gRPC refuses itself, by a bare status.
const slack = 2

// NewServer returns a server of the binding.
func NewServer(cfg Config) (*rpc.Server, error) {
	around := interceptor{gate: cfg.Gate, load: cfg.Load, limit: cfg.Limits.Body, logger: cfg.Logger}
	server, err := rpc.NewServer(rpc.ServerConfig{
		Addr:           cfg.Addr,
		MaxRecvBytes:   slack * cfg.Limits.Body,
		Interceptors:   []rpc.Interceptor{{Name: "admission", Unary: around.unary, Stream: around.stream}},
		FailuresLogged: true,
		Telemetry:      cfg.Telemetry,
		Logger:         cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	a2apb.RegisterA2AServiceServer(server.Registrar(), service{cfg.Operations})
	return server, nil
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
