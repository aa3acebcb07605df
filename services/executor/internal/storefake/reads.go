package storefake

import (
	"context"

	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"google.golang.org/grpc"
)

// ListEvents reads a task's events above a version.
func (s *Store) ListEvents(
	_ context.Context, q *taskstorev1.ListEventsRequest, _ ...grpc.CallOption,
) (*taskstorev1.ListEventsResponse, error) {
	answer := &taskstorev1.ListEventsResponse{}
	err := s.call("ListEvents", 1, func() {
		r := s.tasks[q.GetTaskId()]
		answer.Version = r.version
		for _, e := range r.events {
			if e.GetVersion() > q.GetAfter() {
				answer.Events = append(answer.Events, e)
			}
		}
	})
	return answer, err
}

// ListUserMessages reads a task's messages above a version.
func (s *Store) ListUserMessages(
	_ context.Context, q *taskstorev1.ListUserMessagesRequest, _ ...grpc.CallOption,
) (*taskstorev1.ListUserMessagesResponse, error) {
	answer := &taskstorev1.ListUserMessagesResponse{}
	err := s.call("ListUserMessages", 1, func() {
		for _, m := range s.tasks[q.GetTaskId()].messages {
			if m.GetVersion() > q.GetAfter() {
				answer.Messages = append(answer.Messages, m)
			}
		}
	})
	return answer, err
}

// GetInfo names the agents file that was set.
func (s *Store) GetInfo(context.Context, *taskstorev1.GetInfoRequest, ...grpc.CallOption) (*taskstorev1.GetInfoResponse, error) {
	answer := &taskstorev1.GetInfoResponse{}
	err := s.call("GetInfo", 1, func() { answer.AgentsVersion = s.agentsVersion })
	return answer, err
}
