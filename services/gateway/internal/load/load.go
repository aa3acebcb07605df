// Package load bounds what a gateway works on at the same time: requests, and the
// memory of their bodies and answers. A request that only waits for a task gives its
// share back: streams and waits have bounds of their own.
package load

import (
	"context"
	"math"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/errandhq/errand/pkg/a2aerr"
)

const (
	// retryPause is what a refused sender should wait.
	retryPause = time.Second
	// smallAnswer is what answers may have, in bytes, without being counted: most have
	// less, and of those not even all streams together are much.
	smallAnswer = 128 << 10
)

// Limit is the bound of one gateway.
type Limit struct {
	requests, memory *semaphore.Weighted
	bytes            int64
}

// New returns a limit of so many requests whose bodies and answers have so many
// bytes together.
func New(requests, memory int) *Limit {
	return &Limit{requests: semaphore.NewWeighted(int64(requests)), memory: semaphore.NewWeighted(int64(memory)), bytes: int64(memory)}
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
// and answers of all requests have too many.
func Hold(ctx context.Context, bytes int) error {
	if s, ok := ctx.Value(key{}).(*share); ok && !s.hold(int64(bytes)) {
		return a2aerr.Unavailable("too much is being received", retryPause)
	}
	return nil
}

// Answer counts an answer of ctx's request, of so many bytes, in the place of its
// body, until done is called or the request leaves: while its reader takes it, or
// doesn't. It fails as Hold does. An answer that is larger than the limit has to be alone.
func Answer(ctx context.Context, bytes int) (done func(), err error) {
	s, ok := ctx.Value(key{}).(*share)
	if !ok || bytes < smallAnswer {
		return func() {}, nil
	}
	n := min(int64(bytes), s.limit.bytes)
	s.release(math.MaxInt64)
	if !s.hold(n) {
		return func() {}, a2aerr.Unavailable("too many answers wait for their readers", retryPause)
	}
	return func() { s.release(n) }, nil
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

func (s *share) hold(bytes int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.limit.memory.TryAcquire(bytes) {
		return false
	}
	s.bytes += bytes
	return true
}

// release gives back so many bytes, or all that are left.
func (s *share) release(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	bytes = min(bytes, s.bytes)
	s.limit.memory.Release(bytes)
	s.bytes -= bytes
}
