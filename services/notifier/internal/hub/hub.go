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
	"go.opentelemetry.io/otel/metric"
	"google.golang.org/grpc"

	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"

	"github.com/errandhq/errand/pkg/lifecycle"
)

// ErrStopped says that the hub has stopped; a gateway may try another notifier.
var ErrStopped = errors.New("the notifier is stopping")

// ErrNoTask is for a Feed to refuse a name with.
var ErrNoTask = errors.New("no task has such a name")

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
	// Subscribe starts the live events of one task. It fails with ErrNoTask for
	// names that no task can have.
	Subscribe(tenant, taskID string) (Subscription, error)
	// Flush returns once the subscriptions made before are in force.
	Flush(context.Context) error
	// Interrupted has a value whenever live events may have been lost.
	Interrupted() <-chan struct{}
}

// Subscription is one task's live events.
type Subscription interface{ Close() }

// Config is what a Hub needs.
type Config struct {
	Log    Log
	Feed   Feed
	Logger *slog.Logger
	Meter  metric.Meter
	// Compare is how often all watched tasks are compared with the store.
	Compare time.Duration
	// StreamBuffer bounds the events that wait for one stream, in bytes.
	StreamBuffer int
}

// Hub is all watches of one notifier. It is a lifecycle.Service.
type Hub struct {
	*lifecycle.Loop

	cfg     Config
	metrics *metrics

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
}

// New returns a hub that does nothing before Start.
func New(cfg Config) (*Hub, error) {
	h := &Hub{
		cfg:      cfg,
		topics:   map[key]*topic{},
		streams:  map[*Stream]struct{}{},
		joinWake: newSignal(),
		fillWake: newSignal(),
	}
	h.Loop = lifecycle.NewLoop(h.run)
	var err error
	h.metrics, err = newMetrics(cfg.Meter, h.count)
	return h, err
}

// count returns how many watches there are.
func (h *Hub) count() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	watches := 0
	for s := range h.streams {
		watches += len(s.watches)
	}
	return int64(watches)
}

// run runs the loops until the context ends.
func (h *Hub) run(ctx context.Context) error {
	var loops sync.WaitGroup
	loops.Go(func() { h.joinLoop(ctx) })
	loops.Go(func() { h.compareLoop(ctx) })
	for range fillers {
		loops.Go(func() { h.fillLoop(ctx) })
	}
	loops.Wait()
	return context.Cause(ctx)
}

// Drain ends all streams with ErrStopped, also those to come.
func (h *Hub) Drain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopped = true
	for s := range h.streams {
		s.wake.set()
	}
}

// Stop ends all streams, then the loops.
func (h *Hub) Stop(ctx context.Context) error {
	h.Drain()
	return h.Loop.Stop(ctx)
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
