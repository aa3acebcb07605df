package hub

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/pkg/task"
	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	notifierv1 "github.com/errandhq/errand/proto/gen/errand/notifier/v1"
)

const (
	// turn is how many events a watch sends before the others get theirs.
	turn = 32
	// batchBytes is about how much Next returns at most.
	batchBytes = 1 << 20
)

// Stream is all watches of one gateway.
type Stream struct {
	hub     *Hub
	watches map[uint64]*watch
	// Watches that have something to send, in turn.
	queue []*watch
	// Watches that miss something and wait for room.
	starved []*watch
	// Encoded size of the events that wait, in bytes.
	buffered int
	wake     signal
	closed   bool
}

// Open begins a stream without watches. It lasts until Close.
func (h *Hub) Open() *Stream {
	s := &Stream{hub: h, watches: map[uint64]*watch{}, wake: newSignal()}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.streams[s] = struct{}{}
	return s
}

// Watch begins a watch under an id that is free on this stream; see
// notifierv1.WatchTask. What comes of it is in Next.
func (s *Stream) Watch(id uint64, tenant, taskID string, after int64) error {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if s.closed {
		return ErrStopped
	}
	if _, ok := s.watches[id]; ok {
		return fmt.Errorf("watch id %d is in use", id)
	}
	w := &watch{id: id, stream: s, after: after}
	s.watches[id] = w
	s.hub.add(w, key{tenant, taskID})
	return nil
}

// Unwatch ends a watch; an unknown id changes nothing.
func (s *Stream) Unwatch(id uint64) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if w := s.watches[id]; w != nil {
		s.hub.remove(w)
	}
}

// Close ends all watches of the stream, and begins no more.
func (s *Stream) Close() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.closed = true
	for _, w := range s.watches {
		s.hub.remove(w)
	}
	delete(s.hub.streams, s)
}

// Next waits for the next responses of any watch, each watch's own in order.
// It fails with ErrStopped or the context's error.
func (s *Stream) Next(ctx context.Context) ([]*notifierv1.WatchResponse, error) {
	for {
		responses, err := s.take()
		if err != nil || len(responses) > 0 {
			return responses, err
		}
		if !s.wake.wait(ctx) {
			return nil, ctx.Err()
		}
	}
}

func (s *Stream) take() ([]*notifierv1.WatchResponse, error) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if s.hub.stopped {
		return nil, ErrStopped
	}
	var b batch
	for len(s.queue) > 0 && b.size < batchBytes {
		w := s.queue[0]
		s.queue[0] = nil
		s.queue = s.queue[1:]
		w.queued = false
		s.takeTurn(w, &b)
	}
	if len(s.queue) == 0 {
		s.queue = nil
	}
	s.hub.metrics.events.Add(context.Background(), int64(b.events))
	return b.responses, nil
}

// takeTurn takes what a watch may send now.
func (s *Stream) takeTurn(w *watch, b *batch) {
	b.responses = append(b.responses, w.notices...)
	w.notices = nil
	for range turn {
		var event *eventv1.Event
		w.change(func() { event = w.seq.Next() })
		if event == nil {
			break
		}
		b.add(w.id, event)
		if ends(event) {
			s.hub.remove(w)
			return
		}
	}
	if w.seq.Ready() {
		s.enqueue(w)
	}
	if w.missing() {
		s.hub.settle(w.topic)
	}
}

// ends reports whether nothing can follow the event.
func ends(event *eventv1.Event) bool {
	switch kind := event.GetKind().(type) {
	case *eventv1.Event_StatusUpdate:
		return task.Terminal(kind.StatusUpdate.GetStatus().GetState())
	case *eventv1.Event_Created:
		return task.Terminal(kind.Created.GetStatus().GetState())
	default:
		return false
	}
}

func (s *Stream) enqueue(w *watch) {
	if !w.queued {
		w.queued = true
		s.queue = append(s.queue, w)
		s.wake.set()
	}
}

func (s *Stream) full() bool { return s.buffered >= s.hub.cfg.StreamBuffer }

// account notes a change of what is buffered. Once half of the room is free the
// watches that waited for it read the log.
func (s *Stream) account(bytes int) {
	s.buffered += bytes
	if bytes >= 0 || s.buffered > s.hub.cfg.StreamBuffer/2 {
		return
	}
	starved := s.starved
	s.starved = nil
	for _, w := range starved {
		w.starved = false
		if !w.gone {
			s.hub.fill(w.topic)
		}
	}
}

// batch is what Next returns.
type batch struct {
	responses []*notifierv1.WatchResponse
	events    int
	size      int
}

func (b *batch) add(id uint64, event *eventv1.Event) {
	b.responses = append(b.responses, &notifierv1.WatchResponse{
		WatchId: id,
		Kind:    &notifierv1.WatchResponse_Event{Event: event},
	})
	b.events++
	b.size += proto.Size(event)
}
