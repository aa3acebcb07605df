package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/errandhq/errand/pkg/telemetry"
)

// Interceptor is one step around every call of a server, of both kinds: a rule
// that holds for unary calls and not for streams is a hole.
type Interceptor struct {
	Name   string
	Unary  grpc.UnaryServerInterceptor
	Stream grpc.StreamServerInterceptor
}

func check(chain []Interceptor) error {
	seen := map[string]bool{}
	for i, interceptor := range chain {
		switch {
		case interceptor.Name == "" || seen[interceptor.Name]:
			return fmt.Errorf("interceptor %d: the name %q is empty or taken", i, interceptor.Name)
		case interceptor.Unary == nil || interceptor.Stream == nil:
			return fmt.Errorf("interceptor %s: want one for unary calls and one for streams", interceptor.Name)
		}
		seen[interceptor.Name] = true
	}
	return nil
}

// recovery turns a panic into an internal error of that call alone.
func recovery(logger *slog.Logger) Interceptor {
	caught := func(ctx context.Context, method string, err *error) {
		if p := recover(); p != nil {
			logger.ErrorContext(ctx, "panic in a gRPC call", "method", method,
				telemetry.LogError, fmt.Sprint(p), "stack", string(debug.Stack()))
			*err = status.Error(codes.Internal, "internal error")
		}
	}
	return Interceptor{
		Name: "recovery",
		Unary: func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
			defer caught(ctx, info.FullMethod, &err)
			return next(ctx, req)
		},
		Stream: func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
			defer caught(stream.Context(), info.FullMethod, &err)
			return next(srv, stream)
		},
	}
}

// failures logs each call that failed, once: loudly what is our fault, and what
// is the caller's for those who look for it.
func failures(logger *slog.Logger) Interceptor {
	report := func(ctx context.Context, method string, began time.Time, err error) {
		if err == nil || strings.HasPrefix(method, "/grpc.health.") {
			return
		}
		logger.Log(ctx, level(err), "a gRPC call failed", "method", method,
			"code", status.Code(err).String(), "duration", time.Since(began), telemetry.LogError, err)
	}
	return Interceptor{
		Name: "failures",
		Unary: func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			began := time.Now()
			resp, err := next(ctx, req)
			report(ctx, info.FullMethod, began, err)
			return resp, err
		},
		Stream: func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			began := time.Now()
			err := next(srv, stream)
			report(stream.Context(), info.FullMethod, began, err)
			return err
		},
	}
}

func level(err error) slog.Level {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return slog.LevelDebug // the caller went away
	}
	switch status.Code(err) {
	case codes.Internal, codes.Unknown, codes.DataLoss, codes.Unimplemented:
		return slog.LevelError
	case codes.Unavailable, codes.ResourceExhausted:
		return slog.LevelWarn
	default:
		return slog.LevelDebug
	}
}
