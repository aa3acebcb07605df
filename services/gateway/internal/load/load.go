// Package load bounds what a gateway works on at the same time: requests, and the
// memory of their bodies. A request that only waits for a task gives its share
// back: streams and waits have bounds of their own.
package load

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/errandhq/errand/pkg/a2aerr"
)

// retryPause is what a refused sender should wait.
const retryPause = time.Second

// Limit is the bound of one gateway.
type Limit struct{ requests, memory *semaphore.Weighted }

// New returns a limit of so many requests whose bodies have so many bytes together.
func New(requests, memory int) *Limit {
	return &Limit{requests: semaphore.NewWeighted(int64(requests)), memory: semaphore.NewWeighted(int64(memory))}
}

// share is what one request has of the limit.
type share struct {
	limit *Limit

	mu sync.Mutex
	// Whether it is counted among the requests, and the bytes that it holds.
	counted bool
	bytes   int64
}

type key struct{}

// Enter counts a request in until leave is called, and fails if there are too many.
// The context goes with the request in either case: the body of one that is refused
// may have to be read for the answer.
func (l *Limit) Enter(ctx context.Context) (_ context.Context, leave func(), err error) {
	s := &share{limit: l, counted: l.requests.TryAcquire(1)}
	if !s.counted {
		err = a2aerr.Unavailable("too many requests are being worked on", retryPause)
	}
	return context.WithValue(ctx, key{}, s), s.giveBack, err
}

// Hold counts further bytes of the body of ctx's request, and fails if the bodies
// of all requests have too many.
func Hold(ctx context.Context, bytes int) error {
	s, ok := ctx.Value(key{}).(*share)
	if !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.limit.memory.TryAcquire(int64(bytes)) {
		return a2aerr.Unavailable("too much is being received", retryPause)
	}
	s.bytes += int64(bytes)
	return nil
}

// Wait gives back what ctx's request holds, since from now on it only waits for a
// task. Its body must not be kept any longer.
func Wait(ctx context.Context) {
	if s, ok := ctx.Value(key{}).(*share); ok {
		s.giveBack()
	}
}

func (s *share) giveBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counted {
		s.limit.requests.Release(1)
	}
	s.limit.memory.Release(s.bytes)
	s.counted, s.bytes = false, 0
}
