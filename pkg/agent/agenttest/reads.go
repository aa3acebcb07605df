package agenttest

import (
	"context"
	"slices"

	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

func (m *memory) ListUserMessages(
	_ context.Context, q *taskstorev1.ListUserMessagesRequest, _ ...grpc.CallOption,
) (*taskstorev1.ListUserMessagesResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	answer := &taskstorev1.ListUserMessagesResponse{}
	for _, message := range m.tasks[q.GetTaskId()].messages {
		if message.GetVersion() > q.GetAfter() {
			answer.Messages = append(answer.Messages, message)
		}
	}
	return answer, nil
}

func (m *memory) GetTask(
	_ context.Context, q *taskstorev1.GetTaskRequest, _ ...grpc.CallOption,
) (*taskstorev1.GetTaskResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.tasks[q.GetTaskId()]
	if r == nil || q.GetScope().GetSubject() != Subject {
		return nil, status.Error(codes.NotFound, "no such task")
	}
	return &taskstorev1.GetTaskResponse{Task: proto.CloneOf(r.task), Version: r.version}, nil
}

func (m *memory) GetContext(
	_ context.Context, q *taskstorev1.GetContextRequest, _ ...grpc.CallOption,
) (*taskstorev1.GetContextResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.contexts[q.GetContextId()]; c != nil {
		return proto.CloneOf(c), nil
	}
	return &taskstorev1.GetContextResponse{}, nil
}

func (m *memory) UpdateContext(
	_ context.Context, q *taskstorev1.UpdateContextRequest, _ ...grpc.CallOption,
) (*taskstorev1.UpdateContextResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.contexts[q.GetContextId()].GetRevision() != q.GetRevision() {
		return nil, status.Error(codes.Aborted, "another revision")
	}
	m.contexts[q.GetContextId()] = &taskstorev1.GetContextResponse{
		State: slices.Clone(q.GetState()), Revision: q.GetRevision() + 1,
	}
	return &taskstorev1.UpdateContextResponse{Revision: q.GetRevision() + 1}, nil
}

func (m *memory) ListTurns(
	_ context.Context, q *taskstorev1.ListTurnsRequest, _ ...grpc.CallOption,
) (*taskstorev1.ListTurnsResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	answer := &taskstorev1.ListTurnsResponse{}
	for _, r := range slices.Backward(m.order) {
		if r.task.GetContextId() == q.GetContextId() && len(answer.GetTurns()) < int(q.GetLimit()) {
			answer.Turns = append(answer.Turns, &taskstorev1.Turn{
				Kind: &taskstorev1.Turn_Task{Task: proto.CloneOf(r.task)},
			})
		}
	}
	return answer, nil
}
