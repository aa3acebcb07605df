package store

import (
	"context"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/a2aerr"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

// GetTask reads a task with its artifacts.
func (s *Store) GetTask(ctx context.Context, r *taskstorev1.GetTaskRequest) (*taskstorev1.GetTaskResponse, error) {
	answer, err := s.getTask(ctx, r)
	return answer, wrap("get task", err)
}

func (s *Store) getTask(ctx context.Context, r *taskstorev1.GetTaskRequest) (*taskstorev1.GetTaskResponse, error) {
	scope, err := s.scope(r.GetScope())
	if err != nil {
		return nil, err
	}
	if err := s.checkHistoryLength(r.HistoryLength); err != nil {
		return nil, err
	}
	t, version, err := s.readTask(ctx, scope, r.GetTaskId(), s.detail(r.HistoryLength))
	if err != nil {
		return nil, err
	}
	return &taskstorev1.GetTaskResponse{Task: t, Version: version}, nil
}

// readTask reads one task as it is at one version.
func (s *Store) readTask(ctx context.Context, scope engine.Scope, id string, detail engine.Detail) (*a2apb.Task, int64, error) {
	found, err := s.engine.ReadTasks(ctx, scope, []string{id}, detail)
	if err != nil {
		return nil, 0, err
	}
	if len(found) == 0 {
		return nil, 0, a2aerr.TaskNotFound(id)
	}
	t, err := toTask(found[0])
	return t, found[0].Task.Version, err
}
