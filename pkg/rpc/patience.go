package rpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/errandhq/errand/pkg/a2aerr"
)

// patience bounds how long unary calls wait for a server. One that hangs, because
// its process is stopped or the network swallows what is sent, says nothing, so the
// call itself must end.
type patience struct {
	limit time.Duration // in all
	// safe tells which calls may come twice: they are sent again halfway, which
	// reaches another server where there is one.
	safe func(method string, in any) bool
}

// errNoAnswer is why a call of ours was given up.
var errNoAnswer = errors.New("no answer in time")

// unary is the interceptor. A call fails as UNAVAILABLE when there is no answer in
// time; a deadline of ctx keeps its own error.
func (p patience) unary(
	ctx context.Context, method string, in, out any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	call := func(ctx context.Context) error { return invoke(ctx, method, in, out, conn, opts...) }
	limit := p.limit
	if p.safe(method, in) {
		half := limit / 2
		if end, ok := ctx.Deadline(); ok {
			half = min(half, time.Until(end)/2)
		}
		if err := attempt(ctx, half, call); !errors.Is(err, errNoAnswer) {
			return err
		}
		limit -= half
	}
	err := attempt(ctx, limit, call)
	if errors.Is(err, errNoAnswer) {
		return fmt.Errorf("%s: %w: %w", method, err, a2aerr.Unavailable("a service gave no answer in time", busyRetry))
	}
	return err
}

func attempt(ctx context.Context, limit time.Duration, call func(context.Context) error) error {
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= limit {
		return onTime(ctx, call)
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := onTime(limited, call)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return errNoAnswer
	}
	return err
}

// onTime makes a call whose deadline the server counts too. Where the server is the
// first to find it over, that of ctx is about to end, which callers look at.
func onTime(ctx context.Context, call func(context.Context) error) error {
	err := call(ctx)
	if status.Code(err) == codes.DeadlineExceeded {
		<-ctx.Done()
	}
	return err
}
