package hub

import (
	"context"
	"fmt"

	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
)

// maxRefs is how many tasks one GetVersions call compares at most.
const maxRefs = 1000

// versions reads the versions of tasks; unknown ones are left out.
func (h *Hub) versions(ctx context.Context, keys []key) (map[key]int64, error) {
	versions := make(map[key]int64, len(keys))
	for _, call := range split(keys) {
		refs := make([]*taskstorev1.TaskRef, 0, len(call))
		for taskID, k := range call {
			refs = append(refs, &taskstorev1.TaskRef{Tenant: k.tenant, TaskId: taskID})
		}
		response, err := h.cfg.Log.GetVersions(ctx, &taskstorev1.GetVersionsRequest{Tasks: refs})
		if err != nil {
			return nil, fmt.Errorf("get versions of %d tasks: %w", len(refs), err)
		}
		for _, v := range response.GetTasks() {
			versions[call[v.GetTaskId()]] = v.GetVersion()
		}
	}
	return versions, nil
}

// split divides keys into calls. Answers name a task by its id alone, so keys
// of one id, which somebody who watches under a foreign tenant can bring about,
// must not share a call.
func split(keys []key) (calls []map[string]key) {
next:
	for _, k := range keys {
		for _, call := range calls {
			if other, ok := call[k.taskID]; !ok || other == k {
				call[k.taskID] = k
				continue next
			}
		}
		calls = append(calls, map[string]key{k.taskID: k})
	}
	return calls
}
