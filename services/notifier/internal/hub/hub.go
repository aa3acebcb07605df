// Package hub keeps the watches of a notifier. A watch joins live events and the
// event log into one feed of a task, in order and without gaps:
//
//	live events ──▶ topic ──▶ watch (sequence) ──▶ stream ──▶ a gateway
//	event log ───────▲  read when a version is missing
//
// A topic is one watched task; all its watches share one subscription. What a
// stream doesn't take in time is dropped from memory and read from the log
// later, so a slow gateway costs neither memory nor other gateways' time.
package hub

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"google.golang.org/grpc"

	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
)

// ErrStopped says that the hub has stopped; a gateway may try another notifier.
var ErrStopped = errors.New("the notifier is stopping")

// hold is how long a hole may wait for a late event before the log is read.
const hold = 50 * time.Millisecond

// fillers is how many reads of the event log run at the same time.
const fillers = 8

// Log is what the hub reads of the task store.
type Log interface {
	ListEvents(ctx context.Context, r *taskstorev1.ListEventsRequest, opts ...grpc.CallOption) (*taskstorev1.ListEventsResponse, error)
	GetVersions(ctx context.Context, r *taskstorev1.GetVersionsRequest, opts ...grpc.CallOption) (*taskstorev1.GetVersionsResponse, error)
}

// Feed brings the live events, which its owner hands to Hub.Deliver.
type Feed interface {
	// Subscribe starts the live events of one task.
	Subscribe(tenant, taskID string) (Subscription, error)
	// Flush returns once the subscriptions made before are in force.
	Flush(context.Context) error
	// Interrupted has a value whenever live events may have been lost.
	Interrupted() <-chan struct{}
}

// Subscription is one task's live events.
type Subscription interface {
	Unsubscribe() error
}

// Config is what a Hub needs.
type Config struct {
	Log    Log
	Feed   Feed
	Logger *slog.Logger
	// Compare is how often all watched tasks are compared with the store.
	Compare time.Duration
	// StreamBuffer bounds the events that wait for one stream, in bytes.
	StreamBuffer int
}

// Hub is all watches of one notifier.
type Hub struct {
	cfg Config

	// Guards everything below, the topics, watches and streams included. It is
	// held for map and slice work alone, never during I/O.
	mu      sync.Mutex
	topics  map[key]*topic
	streams map[*Stream]struct{}
	stopped bool

	// For the join loop, which alone talks to the feed.
	joins    []*watch
	drops    []Subscription
	joinWake signal
	// Topics whose log is to be read.
	fills    []*topic
	fillWake signal

	cancel context.CancelFunc
	loops  sync.WaitGroup
}

// New returns a hub that does nothing before Start.
func New(cfg Config) *Hub {
	return &Hub{
		cfg:      cfg,
		topics:   map[key]*topic{},
		streams:  map[*Stream]struct{}{},
		joinWake: newSignal(),
		fillWake: newSignal(),
	}
}

// Start begins the loops; they end with Stop.
func (h *Hub) Start() {
	var ctx context.Context
	ctx, h.cancel = context.WithCancel(context.Background())
	h.loops.Go(func() { h.joinLoop(ctx) })
	h.loops.Go(func() { h.compareLoop(ctx) })
	for range fillers {
		h.loops.Go(func() { h.fillLoop(ctx) })
	}
}

// Stop ends all streams with ErrStopped, then the loops, and waits for these.
func (h *Hub) Stop() {
	h.mu.Lock()
	h.stopped = true
	for s := range h.streams {
		s.wake.set()
	}
	h.mu.Unlock()
	if h.cancel != nil {
		h.cancel()
	}
	h.loops.Wait()
}

// signal wakes one waiter; setting it again before that changes nothing.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

func (s signal) set() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// wait reports false when the context ends first.
func (s signal) wait(ctx context.Context) bool {
	select {
	case <-s:
		return true
	case <-ctx.Done():
		return false
	}
}

// pause waits out the next delay of a retry.
func pause(ctx context.Context, retry *backoff.ExponentialBackOff) {
	timer := time.NewTimer(retry.NextBackOff())
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func newRetry() *backoff.ExponentialBackOff {
	retry := backoff.NewExponentialBackOff()
	retry.InitialInterval = 100 * time.Millisecond
	retry.MaxInterval = 3 * time.Second
	return retry
}
