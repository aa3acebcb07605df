package hub_test

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/notifier/internal/hub"
)

const tenant = "acme"

func update(taskID string, version int64, state a2apb.TaskState) *eventv1.Event {
	return &eventv1.Event{
		Tenant: tenant, TaskId: taskID, Version: version,
		Kind: &eventv1.Event_StatusUpdate{StatusUpdate: &a2apb.TaskStatusUpdateEvent{
			TaskId: taskID, Status: &a2apb.TaskStatus{State: state},
		}},
	}
}

func working(taskID string, version int64) *eventv1.Event {
	return update(taskID, version, a2apb.TaskState_TASK_STATE_WORKING)
}

// log is a task store's event log in memory.
type log struct {
	mu     sync.Mutex
	events map[string][]*eventv1.Event
	// Versions up to this one are gone.
	expired int64
	fail    error
	// Holds GetVersions up while set.
	gate chan struct{}

	versionCalls, eventCalls int
	// How many tasks the last GetVersions asked for.
	asked int
}

func newLog() *log { return &log{events: map[string][]*eventv1.Event{}} }

// commit appends events to the log; their versions must follow.
func (l *log) commit(events ...*eventv1.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		if e.GetVersion() != int64(len(l.events[e.GetTaskId()]))+1 {
			panic("versions are contiguous")
		}
		l.events[e.GetTaskId()] = append(l.events[e.GetTaskId()], e)
	}
}

// commitWorking gives a task n versions.
func (l *log) commitWorking(taskID string, n int64) {
	l.set(func() { l.events[taskID] = nil })
	for v := int64(1); v <= n; v++ {
		l.commit(working(taskID, v))
	}
}

func (l *log) set(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// reads and compares count the calls so far.
func (l *log) reads() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.eventCalls
}

func (l *log) compares() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.versionCalls
}

func (l *log) ListEvents(_ context.Context, r *taskstorev1.ListEventsRequest, _ ...grpc.CallOption) (*taskstorev1.ListEventsResponse, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.eventCalls++
	events, ok := l.events[r.GetTaskId()]
	switch {
	case l.fail != nil:
		return nil, l.fail
	case !ok || r.GetScope().GetTenant() != tenant:
		return nil, status.Error(codes.NotFound, "no such task")
	}
	version := int64(len(events))
	response := &taskstorev1.ListEventsResponse{Version: version}
	if r.GetAfter() >= l.expired && r.GetAfter() < version {
		page := events[r.GetAfter():]
		response.Events = page[:min(len(page), int(r.GetLimit()))]
	}
	return response, nil
}

func (l *log) GetVersions(_ context.Context, r *taskstorev1.GetVersionsRequest, _ ...grpc.CallOption) (*taskstorev1.GetVersionsResponse, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.versionCalls++
	l.asked = len(r.GetTasks())
	if gate := l.gate; gate != nil {
		l.mu.Unlock()
		<-gate
		l.mu.Lock()
	}
	if l.fail != nil {
		return nil, l.fail
	}
	response := &taskstorev1.GetVersionsResponse{}
	for _, ref := range r.GetTasks() {
		if events, ok := l.events[ref.GetTaskId()]; ok && ref.GetTenant() == tenant {
			response.Tasks = append(response.Tasks, &taskstorev1.TaskVersion{
				TaskId: ref.GetTaskId(), Version: int64(len(events)),
			})
		}
	}
	return response, nil
}

// feed delivers to the hub what the test publishes to subscribed tasks.
type feed struct {
	hub *hub.Hub

	mu          sync.Mutex
	subscribed  map[string]int
	subscribes  int
	interrupted chan struct{}
	// Holds Subscribe up while set.
	gate chan struct{}
}

func newFeed() *feed {
	return &feed{subscribed: map[string]int{}, interrupted: make(chan struct{}, 1)}
}

func (f *feed) Subscribe(_, taskID string) (hub.Subscription, error) {
	if taskID == "a.b" {
		return nil, hub.ErrNoTask
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if gate := f.gate; gate != nil {
		f.mu.Unlock()
		<-gate
		f.mu.Lock()
	}
	f.subscribed[taskID]++
	f.subscribes++
	return &subscription{f, taskID}, nil
}

func (f *feed) Flush(context.Context) error { return nil }

func (f *feed) Interrupted() <-chan struct{} { return f.interrupted }

func (f *feed) count(taskID string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.subscribed[taskID]
}

func (f *feed) publish(events ...*eventv1.Event) {
	for _, e := range events {
		if f.count(e.GetTaskId()) > 0 {
			f.hub.Deliver(e)
		}
	}
}

type subscription struct {
	feed   *feed
	taskID string
}

func (s *subscription) Close() {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	s.feed.subscribed[s.taskID]--
}

// pass lets time pass on the test's fake clock.
func pass(d time.Duration) { <-time.After(d) }
