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

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/services/gateway/internal/admission"
	"github.com/errandhq/errand/services/gateway/internal/failure"
)

// interceptor stands around every call: it lets the call in and makes whatever
// goes wrong a public error, a panic too.
type interceptor struct {
	gate   *admission.Gate
	logger *slog.Logger
}

func (i interceptor) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (res any, err error) {
	if !ofA2A(info.FullMethod) {
		return next(ctx, req)
	}
	err = i.call(ctx, info.FullMethod, func(ctx context.Context) error {
		res, err = next(ctx, req)
		return err
	})
	return res, err
}

func (i interceptor) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if !ofA2A(info.FullMethod) {
		return next(srv, stream)
	}
	return i.call(stream.Context(), info.FullMethod, func(ctx context.Context) error {
		return next(srv, &admitted{stream, ctx})
	})
}

// ofA2A tells A2A's methods from those of the health service, which has no
// versions and no senders.
func ofA2A(method string) bool {
	return strings.HasPrefix(method, "/"+a2apb.A2AService_ServiceDesc.ServiceName+"/")
}

func (i interceptor) call(ctx context.Context, method string, next func(context.Context) error) error {
	err := guard(func() (err error) {
		if ctx, err = i.gate.Admit(ctx, request(ctx)); err != nil {
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

// guard turns a panic into an error.
func guard(run func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	return run()
}

func request(ctx context.Context) admission.Request {
	md, _ := metadata.FromIncomingContext(ctx)
	return admission.Request{
		Metadata: values(md),
		Activated: func(uris []string) {
			// It fails only after the headers were sent, which nobody does before.
			_ = grpc.SetHeader(ctx, metadata.Pairs("a2a-extensions", strings.Join(uris, ", ")))
		},
	}
}

// values are the metadata of a call.
type values metadata.MD

func (v values) Values(name string) []string { return metadata.MD(v).Get(name) }

// admitted is a stream whose context carries its sender.
type admitted struct {
	grpc.ServerStream

	ctx context.Context //nolint:containedctx // that is how gRPC hands it on
}

func (a *admitted) Context() context.Context { return a.ctx }
