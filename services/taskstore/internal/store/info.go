package store

import taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"

// Info tells what this store serves.
func (s *Store) Info() *taskstorev1.GetInfoResponse {
	return &taskstorev1.GetInfoResponse{AgentsVersion: s.Agents.Version}
}
