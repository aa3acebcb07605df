// Package grpcbind is the gRPC binding (A2A §10).
package grpcbind

import (
	"context"
	"log/slog"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

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
		PingAfter:      cfg.Limits.KeepAlive.Value(),
		Telemetry:      cfg.Telemetry,
		Logger:         cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	a2apb.RegisterA2AServiceServer(server.Registrar(), service{Service: cfg.Operations, write: cfg.Limits.Write.Value()})
	return server, nil
}

// service adds to the operations what gRPC does its own way.
type service struct {
	*operation.Service

	// How long one event may wait for its reader.
	write time.Duration
}

// ListTasks takes a page size of 0 as unset: the official Go client always sets it.
func (s service) ListTasks(ctx context.Context, r *a2apb.ListTasksRequest) (*a2apb.ListTasksResponse, error) {
	if r.GetPageSize() == 0 {
		r.PageSize = nil
	}
	return s.Service.ListTasks(ctx, r)
}

func (s service) SendStreamingMessage(r *a2apb.SendMessageRequest, out streamServer) error {
	stream, err := s.StreamMessage(out.Context(), r, operation.Anew)
	if err != nil {
		return err
	}
	return forward(stream, out, s.write)
}

func (s service) SubscribeToTask(r *a2apb.SubscribeToTaskRequest, out streamServer) error {
	stream, err := s.Subscribe(out.Context(), r, operation.Anew)
	if err != nil {
		return err
	}
	return forward(stream, out, s.write)
}
