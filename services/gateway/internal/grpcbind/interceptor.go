package grpcbind

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/services/gateway/internal/admission"
	"github.com/errandhq/errand/services/gateway/internal/failure"
	"github.com/errandhq/errand/services/gateway/internal/load"
)

// interceptor stands around every call: it lets the call in and makes whatever
// goes wrong a public error, a panic too.
type interceptor struct {
	gate   *admission.Gate
	load   *load.Limit
	limit  int // bytes of a request
	logger *slog.Logger
}

func (i interceptor) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (res any, err error) {
	if !ofA2A(info.FullMethod) {
		return next(ctx, req)
	}
	err = i.call(ctx, info.FullMethod, req, func(ctx context.Context) error {
		res, err = next(ctx, req)
		return err
	})
	return res, err
}

// stream reads the request before the call counts, as gRPC does for unary calls:
// who sends none takes no place.
func (i interceptor) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if !ofA2A(info.FullMethod) {
		return next(srv, stream)
	}
	req := newRequest(info.FullMethod)
	if err := stream.RecvMsg(req); err != nil {
		return err
	}
	return i.call(stream.Context(), info.FullMethod, req, func(ctx context.Context) error {
		return next(srv, &admitted{stream, ctx, req})
	})
}

// ofA2A tells A2A's methods from those of the health service, which has no
// versions and no senders.
func ofA2A(method string) bool {
	return strings.HasPrefix(method, "/"+a2apb.A2AService_ServiceDesc.ServiceName+"/")
}

func (i interceptor) call(ctx context.Context, method string, req any, next func(context.Context) error) error {
	ctx, leave, err := i.load.Enter(ctx)
	defer leave()
	err = guard(func() error {
		if err != nil {
			return err
		}
		if ctx, err = i.gate.Admit(ctx, request(ctx, req)); err != nil {
			return err
		}
		if err := i.hold(ctx, req); err != nil {
			return err
		}
		return next(ctx)
	})
	if err == nil {
		return nil
	}
	public := failure.Report(ctx, i.logger, method, err)
	return public.StatusFor(a2aerr.Profile(admission.ErrorProfile(ctx))).Err()
}

// hold counts a request among the bodies of all requests.
func (i interceptor) hold(ctx context.Context, req any) error {
	m, ok := req.(proto.Message)
	if !ok {
		return nil
	}
	size := proto.Size(m)
	if size > i.limit {
		return a2aerr.TooLarge("body", fmt.Sprintf("may have at most %d bytes", i.limit))
	}
	return load.Hold(ctx, size)
}

// guard turns a panic into an error.
func guard(run func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	return run()
}

func request(ctx context.Context, req any) admission.Request {
	md, _ := metadata.FromIncomingContext(ctx)
	r := admission.Request{
		Metadata: values(md),
		Activated: func(uris []string) {
			// It fails only after the headers were sent, which nobody does before.
			_ = grpc.SetHeader(ctx, metadata.Pairs("a2a-extensions", strings.Join(uris, ", ")))
		},
	}
	if routed, ok := req.(interface{ GetTenant() string }); ok {
		r.RoutingID = routed.GetTenant()
	}
	return r
}

// values are the metadata of a call.
type values metadata.MD

func (v values) Values(name string) []string { return metadata.MD(v).Get(name) }
