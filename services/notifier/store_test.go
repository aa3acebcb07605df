package notifier_test

import (
	"context"
	"sync"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
)

const tenant = "default"

// store is the part of a task store that a notifier reads, in memory.
type store struct {
	taskstorev1.UnimplementedTaskStoreServiceServer

	mu   sync.Mutex
	logs map[string][]*eventv1.Event
}

func newStore() *store { return &store{logs: map[string][]*eventv1.Event{}} }

// commit gives a task its next version.
func (s *store) commit(taskID string, state a2apb.TaskState) *eventv1.Event {
	return s.commitKind(taskID, &eventv1.Event{Kind: &eventv1.Event_StatusUpdate{
		StatusUpdate: &a2apb.TaskStatusUpdateEvent{TaskId: taskID, Status: &a2apb.TaskStatus{State: state}},
	}})
}

func (s *store) commitKind(taskID string, e *eventv1.Event) *eventv1.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.Tenant, e.TaskId, e.Version = tenant, taskID, int64(len(s.logs[taskID]))+1
	s.logs[taskID] = append(s.logs[taskID], e)
	return e
}

func (s *store) ListEvents(_ context.Context, r *taskstorev1.ListEventsRequest) (*taskstorev1.ListEventsResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	log, ok := s.logs[r.GetTaskId()]
	if !ok || r.GetScope().GetTenant() != tenant {
		return nil, status.Error(codes.NotFound, "no such task")
	}
	after := min(r.GetAfter(), int64(len(log)))
	page := log[after:]
	return &taskstorev1.ListEventsResponse{
		Events: page[:min(len(page), int(r.GetLimit()))], Version: int64(len(log)),
	}, nil
}

func (s *store) GetVersions(_ context.Context, r *taskstorev1.GetVersionsRequest) (*taskstorev1.GetVersionsResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	response := &taskstorev1.GetVersionsResponse{}
	for _, ref := range r.GetTasks() {
		if log, ok := s.logs[ref.GetTaskId()]; ok && ref.GetTenant() == tenant {
			response.Tasks = append(response.Tasks, &taskstorev1.TaskVersion{TaskId: ref.GetTaskId(), Version: int64(len(log))})
		}
	}
	return response, nil
}
