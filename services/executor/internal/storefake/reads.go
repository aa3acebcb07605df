package storefake

import (
	"context"

	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"google.golang.org/grpc"
)

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
