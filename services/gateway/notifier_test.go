package gateway_test

import (
	"sync"

	"google.golang.org/grpc"

	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	notifierv1 "github.com/errandhq/errand/proto/gen/errand/notifier/v1"

	"github.com/errandhq/errand/pkg/task"
)

// notices is a notifier beside the memory store.
type notices struct {
	notifierv1.UnimplementedNotifierServiceServer

	store *memory
	// Events get lost, without a trace.
	deaf bool
}

// feed is one gateway's stream of watches.
type feed struct {
	deaf    bool
	out     grpc.BidiStreamingServer[notifierv1.WatchRequest, notifierv1.WatchResponse]
	watches map[uint64]*watched // guarded by the store

	mu      sync.Mutex
	pending []*notifierv1.WatchResponse
	wake    chan struct{}
}

type watched struct {
	taskID   string
	position int64
}

func (n *notices) Watch(out grpc.BidiStreamingServer[notifierv1.WatchRequest, notifierv1.WatchResponse]) error {
	f := &feed{out: out, deaf: n.deaf, watches: map[uint64]*watched{}, wake: make(chan struct{}, 1)}
	n.store.mu.Lock()
	n.store.streams[f] = struct{}{}
	n.store.mu.Unlock()
	defer func() {
		n.store.mu.Lock()
		defer n.store.mu.Unlock()
		delete(n.store.streams, f)
	}()
	var sending sync.WaitGroup
	sending.Go(f.send)
	defer sending.Wait()
	for {
		r, err := out.Recv()
		if err != nil {
			return nil
		}
		n.request(f, r)
	}
}

func (n *notices) request(f *feed, r *notifierv1.WatchRequest) {
	n.store.mu.Lock()
	defer n.store.mu.Unlock()
	w := r.GetWatch()
	if w == nil {
		delete(f.watches, r.GetWatchId())
		return
	}
	t := n.store.tasks[w.GetTaskId()]
	if t == nil || t.tenant != w.GetTenant() {
		f.put(&notifierv1.WatchResponse{WatchId: r.GetWatchId(), Kind: &notifierv1.WatchResponse_NotFound{NotFound: &notifierv1.NotFound{}}})
		return
	}
	position := w.GetAfter()
	if position < 0 || position > t.version {
		position = t.version
	}
	f.watches[r.GetWatchId()] = &watched{taskID: w.GetTaskId(), position: position}
	f.put(&notifierv1.WatchResponse{WatchId: r.GetWatchId(), Kind: &notifierv1.WatchResponse_Watching{
		Watching: &notifierv1.Watching{Position: position},
	}})
	for _, e := range t.events[position:] {
		f.announce(e)
	}
}

// announce is called with the store's lock held.
func (f *feed) announce(e *eventv1.Event) {
	for id, w := range f.watches {
		if f.deaf || w.taskID != e.GetTaskId() || e.GetVersion() != w.position+1 {
			continue
		}
		w.position++
		f.put(&notifierv1.WatchResponse{WatchId: id, Kind: &notifierv1.WatchResponse_Event{Event: e}})
		if task.Terminal(e.GetStatusUpdate().GetStatus().GetState()) {
			delete(f.watches, id)
		}
	}
}

// gap tells all who watch a task that events may have been missed, and returns
// the versions at which the task is read from now on.
func (m *memory) gap(taskID string) <-chan int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.read = make(chan int64, 1)
	for f := range m.streams {
		for id, w := range f.watches {
			if w.taskID == taskID {
				f.put(&notifierv1.WatchResponse{WatchId: id, Kind: &notifierv1.WatchResponse_Gap{
					Gap: &notifierv1.Gap{Position: w.position},
				}})
			}
		}
	}
	return m.read
}

func (f *feed) put(r *notifierv1.WatchResponse) {
	f.mu.Lock()
	f.pending = append(f.pending, r)
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *feed) send() {
	for {
		f.mu.Lock()
		pending := f.pending
		f.pending = nil
		f.mu.Unlock()
		for _, r := range pending {
			if f.out.Send(r) != nil {
				return
			}
		}
		select {
		case <-f.wake:
		case <-f.out.Context().Done():
			return
		}
	}
}
