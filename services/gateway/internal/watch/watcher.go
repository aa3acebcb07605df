// Package watch brings the live events of tasks from the notifier to the
// gateway's streams and waiting requests. All watches of a gateway share one
// gRPC stream; subscribers of the same task share one watch on it.
//
// A caller subscribes first, then reads a snapshot of the task at version v,
// then passes over events up to v. Nothing can be missed in between: the
// snapshot is never older than the subscription's position.
package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"unicode/utf8"

	notifierv1 "github.com/errandhq/errand/proto/gen/errand/notifier/v1"

	"github.com/errandhq/errand/pkg/lifecycle"
)

var (
	// ErrUnavailable says that the notifier could not be reached in time.
	ErrUnavailable = errors.New("the notifier can't be reached")
	// ErrNotFound says that the task does not exist, or no longer.
	ErrNotFound = errors.New("no such task to watch")
)

// Config is what a Watcher needs.
type Config struct {
	Client notifierv1.NotifierServiceClient
	Logger *slog.Logger
	// Buffer is how many events may wait for one subscriber before it gets a
	// Resync instead.
	Buffer int
}

// Watcher is a lifecycle.Service. It keeps the stream to the notifier and makes
// it anew when it breaks; subscriptions outlive that.
type Watcher struct {
	cfg  Config
	loop *lifecycle.Loop

	mu     sync.Mutex
	topics map[key]*topic
	// The watches of the current stream.
	watches map[uint64]*topic
	lastID  uint64
	// Requests for the current stream; nil while there is none.
	outbox *outbox
	// Whether the notifier has answered on the current stream.
	answered bool
	stopped  bool
}

// New returns a watcher that connects when it is started.
func New(cfg Config) *Watcher {
	w := &Watcher{cfg: cfg, topics: map[key]*topic{}, watches: map[uint64]*topic{}}
	w.loop = lifecycle.NewLoop(w.run)
	return w
}

// Start begins to connect; it doesn't wait for the notifier.
func (w *Watcher) Start(ctx context.Context) error { return w.loop.Start(ctx) }

// Stop ends all subscriptions with ErrUnavailable and closes the stream.
func (w *Watcher) Stop(ctx context.Context) error {
	w.mu.Lock()
	w.stopped = true
	for _, t := range w.topics {
		w.end(t, ErrUnavailable)
	}
	w.mu.Unlock()
	return w.loop.Stop(ctx)
}

// Ready fails while there is no stream to the notifier.
func (w *Watcher) Ready() error {
	if err := w.loop.Ready(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.outbox == nil {
		return ErrUnavailable
	}
	return nil
}

// Watch subscribes to the events of a task above version after; -1 stands for
// the task's version now. It returns once the subscription is live and fails
// with ErrNotFound, or with ErrUnavailable if ctx ends before.
//
// A task that is watched already is joined where its feed is: the position of
// the subscription may then be above after, and what lies between is in the
// store.
func (w *Watcher) Watch(ctx context.Context, tenant, taskID string, after int64) (*Subscription, error) {
	if !utf8.ValidString(tenant) || !utf8.ValidString(taskID) {
		// It can't be sent, and trying would break the stream for everybody.
		return nil, ErrNotFound
	}
	s, live := w.subscribe(key{tenant, taskID}, after)
	select {
	case <-live:
	case <-ctx.Done():
		s.Close()
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, context.Cause(ctx))
	}
	if err := s.failed(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// subscribe joins or starts a topic. The channel is closed when the topic is
// live or has ended.
func (w *Watcher) subscribe(k key, after int64) (*Subscription, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		t := newTopic(k, after)
		s := t.add(w, after)
		t.end(ErrUnavailable)
		return s, t.live
	}
	t := w.topics[k]
	if t == nil {
		t = newTopic(k, after)
		w.topics[k] = t
		w.request(t)
	}
	return t.add(w, after), t.live
}

// request asks for a topic's watch on the current stream, if there is one.
func (w *Watcher) request(t *topic) {
	if w.outbox == nil {
		return
	}
	w.lastID++
	t.id = w.lastID
	w.watches[t.id] = t
	w.outbox.put(&notifierv1.WatchRequest{WatchId: t.id, Kind: &notifierv1.WatchRequest_Watch{
		Watch: &notifierv1.WatchTask{Tenant: t.tenant, TaskId: t.taskID, After: t.position},
	}})
}

// leave takes a subscription off its topic; the last one ends the watch.
func (w *Watcher) leave(s *Subscription) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := s.topic
	delete(t.subscribers, s)
	if len(t.subscribers) > 0 || w.topics[t.key] != t {
		return
	}
	w.forget(t)
	if w.outbox != nil {
		w.outbox.put(&notifierv1.WatchRequest{WatchId: t.id, Kind: &notifierv1.WatchRequest_Unwatch{
			Unwatch: &notifierv1.UnwatchTask{},
		}})
	}
}

// end is for a topic of which nothing more will come.
func (w *Watcher) end(t *topic, err error) {
	w.forget(t)
	t.end(err)
}

func (w *Watcher) forget(t *topic) {
	delete(w.topics, t.key)
	delete(w.watches, t.id)
}
