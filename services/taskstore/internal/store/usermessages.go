package store

import (
	"context"

	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

// ListUserMessages reads a task's user messages above a version, oldest first.
func (s *Store) ListUserMessages(
	ctx context.Context, r *taskstorev1.ListUserMessagesRequest,
) (*taskstorev1.ListUserMessagesResponse, error) {
	rows, err := s.engine.ReadUserMessages(ctx, engine.TaskRef{Tenant: r.GetTenant(), ID: r.GetTaskId()}, r.GetAfter())
	if err != nil {
		return nil, wrap("list user messages", err)
	}
	answer := &taskstorev1.ListUserMessagesResponse{}
	for _, row := range rows {
		m, err := toUserMessage(row)
		if err != nil {
			return nil, wrap("list user messages", err)
		}
		answer.Messages = append(answer.Messages, m)
	}
	return answer, nil
}
