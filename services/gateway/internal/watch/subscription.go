package watch

import (
	"context"
	"io"
	"sync"

	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
)

// bufferBytes bounds the events that wait for one subscriber, beside their
// number; a single larger one still fits.
const bufferBytes = 8 << 20

// Item is what a subscription gives: the next event, or Resync. After a Resync
// the subscriber reads a fresh snapshot of the task and goes on with the
// versions above it: its buffer had overflowed, the event log had a gap, or the
// notifier has been out of reach.
type Item struct {
	Event  *eventv1.Event
	Resync bool
}

// Subscription is one reader of a task's events. Next is for one goroutine.
type Subscription struct {
	watcher *Watcher
	topic   *topic
	limit   int
	wake    chan struct{}

	mu       sync.Mutex
	position int64
	events   []*eventv1.Event
	size     []int
	bytes    int
	// A Resync is due; events before it is taken are in the snapshot after it.
	resyncDue bool
	ended     bool
	err       error
}

// Position returns the version above which events come.
func (s *Subscription) Position() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.position
}

// Next waits for the next item. It returns io.EOF after the event that made the
// task terminal, ErrNotFound when the task is gone, ErrUnavailable when the
// watcher has stopped, or the context's error.
func (s *Subscription) Next(ctx context.Context) (Item, error) {
	for {
		if item, ok, err := s.take(); ok || err != nil {
			return item, err
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return Item{}, context.Cause(ctx)
		}
	}
}

// Close ends the subscription; twice is once.
func (s *Subscription) Close() { s.watcher.leave(s) }

func (s *Subscription) take() (item Item, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.resyncDue:
		s.resyncDue = false
		return Item{Resync: true}, true, nil
	case len(s.events) > 0:
		return Item{Event: s.pop()}, true, nil
	case s.ended && s.err != nil:
		return Item{}, false, s.err
	case s.ended:
		return Item{}, false, io.EOF
	}
	return Item{}, false, nil
}

func (s *Subscription) pop() *eventv1.Event {
	event := s.events[0]
	s.bytes -= s.size[0]
	s.events[0] = nil
	s.events, s.size = s.events[1:], s.size[1:]
	if len(s.events) == 0 {
		s.events, s.size = nil, nil
	}
	return event
}

// begin fixes where the subscription starts.
func (s *Subscription) begin(position int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.position = max(s.position, position)
}

func (s *Subscription) push(event *eventv1.Event, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.resyncDue || event.GetVersion() <= s.position:
		return
	case len(s.events) >= s.limit, len(s.events) > 0 && s.bytes+size > bufferBytes:
		s.overflow()
	default:
		s.events, s.size = append(s.events, event), append(s.size, size)
		s.bytes += size
	}
	s.signal()
}

func (s *Subscription) resync() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.overflow()
	s.signal()
}

func (s *Subscription) overflow() {
	s.events, s.size, s.bytes = nil, nil, 0
	s.resyncDue = true
}

func (s *Subscription) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.ended, s.err = true, err
	}
	s.signal()
}

// failed returns why the subscription can't begin, or nil.
func (s *Subscription) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended && len(s.events) == 0 && !s.resyncDue {
		return s.err
	}
	return nil
}

func (s *Subscription) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
