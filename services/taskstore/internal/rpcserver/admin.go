package rpcserver

import (
	"context"

	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/store"
)

// Admin implements the service errand.taskstore.v1.AdminService.
type Admin struct {
	taskstorev1.UnimplementedAdminServiceServer

	store *store.Store
}

// NewAdmin returns the server of a store for operators.
func NewAdmin(s *store.Store) *Admin { return &Admin{store: s} }

// ListDeadLetters implements the gRPC service.
func (s *Admin) ListDeadLetters(
	ctx context.Context, r *taskstorev1.ListDeadLettersRequest,
) (*taskstorev1.ListDeadLettersResponse, error) {
	return call(ctx, r, s.store.ListDeadLetters)
}

// RedriveDeadLetters implements the gRPC service.
func (s *Admin) RedriveDeadLetters(
	ctx context.Context, r *taskstorev1.RedriveDeadLettersRequest,
) (*taskstorev1.RedriveDeadLettersResponse, error) {
	return call(ctx, r, s.store.RedriveDeadLetters)
}
