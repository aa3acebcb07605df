package store

import (
	"context"

	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

// GetVersions compares many tasks at once; unknown ones are left out.
func (s *Store) GetVersions(
	ctx context.Context, r *taskstorev1.GetVersionsRequest,
) (*taskstorev1.GetVersionsResponse, error) {
	if err := checkItems("tasks", len(r.GetTasks())); err != nil {
		return nil, err
	}
	refs := make([]engine.TaskRef, len(r.GetTasks()))
	for i, t := range r.GetTasks() {
		refs[i] = engine.TaskRef{Tenant: t.GetTenant(), ID: t.GetTaskId()}
	}
	heads, err := s.engine.ReadHeads(ctx, refs)
	if err != nil {
		return nil, wrap("get versions", err)
	}
	answer := &taskstorev1.GetVersionsResponse{}
	for _, h := range heads {
		answer.Tasks = append(answer.Tasks, &taskstorev1.TaskVersion{TaskId: h.ID, Version: h.Version, State: h.State})
	}
	return answer, nil
}
