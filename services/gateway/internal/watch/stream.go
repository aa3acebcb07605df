package watch

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	notifierv1 "github.com/errandhq/errand/proto/gen/errand/notifier/v1"
)

const (
	firstRetry   = 50 * time.Millisecond
	slowestRetry = 3 * time.Second
	// silence is how long subscribers may hear nothing of a notifier that is out
	// of reach before they are sent to the store.
	silence = 4 * time.Second
)

// run keeps a stream to the notifier until the context ends.
func (w *Watcher) run(ctx context.Context) error {
	retry := backoff.NewExponentialBackOff()
	retry.InitialInterval, retry.MaxInterval = firstRetry, slowestRetry
	heard := time.Now()
	for {
		err := w.session(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if w.disconnect() {
			retry.Reset()
			heard = time.Now()
		}
		if time.Since(heard) > silence {
			w.resync()
			heard = time.Now()
		}
		w.cfg.Logger.WarnContext(ctx, "the stream to the notifier is broken; connecting again", "error", err)
		pause(ctx, retry.NextBackOff())
	}
}

// session watches all topics on one stream until it breaks.
func (w *Watcher) session(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := w.cfg.Client.Watch(ctx)
	if err != nil {
		cancel()
		return fmt.Errorf("open the watch stream: %w", err)
	}
	var sender sync.WaitGroup
	defer sender.Wait()
	defer cancel()
	outbox := w.connect()
	sender.Go(func() {
		// A failed send shows in the receiver too, with its reason.
		defer cancel()
		outbox.drain(ctx, stream.Send)
	})
	for {
		response, err := stream.Recv()
		if err != nil {
			return fmt.Errorf("receive from the watch stream: %w", err)
		}
		w.receive(response)
	}
}

// connect asks for every topic on a new stream, from where its feed is.
func (w *Watcher) connect() *outbox {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outbox = newOutbox()
	w.answered = false
	for _, t := range w.topics {
		w.request(t)
	}
	return w.outbox
}

// disconnect reports whether the notifier had answered on the stream.
func (w *Watcher) disconnect() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outbox = nil
	clear(w.watches)
	for _, t := range w.topics {
		t.interrupt()
	}
	answered := w.answered
	w.answered = false
	return answered
}

func (w *Watcher) resync() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.topics {
		t.resync()
	}
}

func (w *Watcher) receive(response *notifierv1.WatchResponse) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answered = true
	t := w.watches[response.GetWatchId()]
	if t == nil {
		// Of a watch that nobody wants any more.
		return
	}
	switch kind := response.GetKind().(type) {
	case *notifierv1.WatchResponse_Watching:
		t.watching(kind.Watching.GetPosition())
	case *notifierv1.WatchResponse_Event:
		if t.deliver(kind.Event) {
			w.end(t, nil)
		}
	case *notifierv1.WatchResponse_Gap:
		t.gap(kind.Gap.GetPosition())
	case *notifierv1.WatchResponse_NotFound:
		w.end(t, ErrNotFound)
	}
}

func pause(ctx context.Context, delay time.Duration) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
