package watch_test

import (
	"context"
	"io"
	"sync"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	notifierv1 "github.com/errandhq/errand/proto/gen/errand/notifier/v1"
)

const tenant = "acme"

func update(version int64, state a2apb.TaskState) *eventv1.Event {
	return &eventv1.Event{
		Tenant: tenant, TaskId: "t", Version: version,
		Kind: &eventv1.Event_StatusUpdate{StatusUpdate: &a2apb.TaskStatusUpdateEvent{
			TaskId: "t", Status: &a2apb.TaskStatus{State: state},
		}},
	}
}

func working(version int64) *eventv1.Event {
	return update(version, a2apb.TaskState_TASK_STATE_WORKING)
}

// fakeNotifier is a NotifierServiceClient whose other end is the test.
type fakeNotifier struct {
	mu      sync.Mutex
	down    bool
	dials   int
	streams []*stream
}

func (n *fakeNotifier) Watch(ctx context.Context, _ ...grpc.CallOption) (grpc.BidiStreamingClient[notifierv1.WatchRequest, notifierv1.WatchResponse], error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dials++
	if n.down {
		return nil, status.Error(codes.Unavailable, "down")
	}
	s := &stream{done: ctx.Done(), responses: make(chan *notifierv1.WatchResponse, 1000), broken: make(chan struct{})}
	n.streams = append(n.streams, s)
	return s, nil
}

func (n *fakeNotifier) setDown(down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = down
}

// current returns the stream that was opened last.
func (n *fakeNotifier) current() *stream {
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.streams[len(n.streams)-1]
}

type stream struct {
	grpc.ClientStream

	done      <-chan struct{}
	responses chan *notifierv1.WatchResponse
	broken    chan struct{}

	mu       sync.Mutex
	requests []*notifierv1.WatchRequest
}

func (s *stream) Send(r *notifierv1.WatchRequest) error {
	select {
	case <-s.broken:
		return io.EOF
	case <-s.done:
		return context.Canceled
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	return nil
}

func (s *stream) Recv() (*notifierv1.WatchResponse, error) {
	select {
	case r := <-s.responses:
		return r, nil
	default:
	}
	select {
	case r := <-s.responses:
		return r, nil
	case <-s.broken:
		return nil, status.Error(codes.Unavailable, "broken")
	case <-s.done:
		return nil, context.Canceled
	}
}

func (s *stream) cut() { close(s.broken) }

// sent returns the requests that came since the last call.
func (s *stream) sent() []*notifierv1.WatchRequest {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := s.requests
	s.requests = nil
	return requests
}

func (s *stream) watching(id uint64, position int64) {
	s.responses <- &notifierv1.WatchResponse{WatchId: id, Kind: &notifierv1.WatchResponse_Watching{
		Watching: &notifierv1.Watching{Position: position},
	}}
}

func (s *stream) gap(id uint64, position int64) {
	s.responses <- &notifierv1.WatchResponse{WatchId: id, Kind: &notifierv1.WatchResponse_Gap{
		Gap: &notifierv1.Gap{Position: position},
	}}
}

func (s *stream) notFound(id uint64) {
	s.responses <- &notifierv1.WatchResponse{WatchId: id, Kind: &notifierv1.WatchResponse_NotFound{
		NotFound: &notifierv1.NotFound{},
	}}
}

func (s *stream) events(id uint64, events ...*eventv1.Event) {
	for _, e := range events {
		s.responses <- &notifierv1.WatchResponse{WatchId: id, Kind: &notifierv1.WatchResponse_Event{Event: e}}
	}
}

// pass lets time pass on the test's fake clock.
func pass(d time.Duration) { <-time.After(d) }
