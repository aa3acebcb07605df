package rpc

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"

	"github.com/errandhq/errand/pkg/a2aerr"
)

// busyRetry is what a refused caller should wait.
const busyRetry = time.Second

// bounds refuses calls beyond a number, and gives unary calls a deadline. The
// number is one of each method, so that a flood of one leaves room for the others:
// a heartbeat must not fail because many messages come in.
type bounds struct {
	limit    int
	duration time.Duration
	methods  sync.Map // of *semaphore.Weighted, by method
}

// bounded is the interceptor; limit and duration are not bounded where they are 0.
func bounded(limit int, duration time.Duration) Interceptor {
	b := &bounds{limit: limit, duration: duration}
	return Interceptor{Name: "bounds", Unary: b.unary, Stream: b.stream}
}

func (b *bounds) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	leave, err := b.enter(info.FullMethod)
	if err != nil {
		return nil, err
	}
	defer leave()
	if b.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, b.duration)
		defer cancel()
	}
	return next(ctx, req)
}

func (b *bounds) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	leave, err := b.enter(info.FullMethod)
	if err != nil {
		return err
	}
	defer leave()
	return next(srv, stream)
}

func (b *bounds) enter(method string) (leave func(), err error) {
	if b.limit == 0 {
		return func() {}, nil
	}
	found, ok := b.methods.Load(method)
	if !ok {
		found, _ = b.methods.LoadOrStore(method, semaphore.NewWeighted(int64(b.limit)))
	}
	running, _ := found.(*semaphore.Weighted)
	if !running.TryAcquire(1) {
		return nil, a2aerr.Unavailable("the service is busy", busyRetry)
	}
	return func() { running.Release(1) }, nil
}
