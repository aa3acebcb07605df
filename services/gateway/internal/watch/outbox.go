package watch

import (
	"context"
	"sync"

	notifierv1 "github.com/errandhq/errand/proto/gen/errand/notifier/v1"
)

// outbox holds requests until they are sent, so that nobody who subscribes or
// leaves waits for the network.
type outbox struct {
	mu       sync.Mutex
	requests []*notifierv1.WatchRequest
	wake     chan struct{}
}

func newOutbox() *outbox { return &outbox{wake: make(chan struct{}, 1)} }

func (o *outbox) put(request *notifierv1.WatchRequest) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.requests = append(o.requests, request)
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// drain sends what is put until a send fails or the context ends.
func (o *outbox) drain(ctx context.Context, send func(*notifierv1.WatchRequest) error) {
	for {
		for _, request := range o.take() {
			if send(request) != nil {
				return
			}
		}
		select {
		case <-o.wake:
		case <-ctx.Done():
			return
		}
	}
}

func (o *outbox) take() []*notifierv1.WatchRequest {
	o.mu.Lock()
	defer o.mu.Unlock()
	requests := o.requests
	o.requests = nil
	return requests
}
