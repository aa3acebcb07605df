// Package rpcserver puts the store on gRPC. A method calls the store and gives
// errors their public form; it holds no rule.
package rpcserver

import (
	"context"

	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/store"
)

// Server implements the service errand.taskstore.v1.TaskStoreService.
type Server struct {
	taskstorev1.UnimplementedTaskStoreServiceServer

	store *store.Store
}

// New returns the server of a store.
func New(s *store.Store) *Server { return &Server{store: s} }

// AcceptMessage implements the gRPC service.
func (s *Server) AcceptMessage(
	ctx context.Context, r *taskstorev1.AcceptMessageRequest,
) (*taskstorev1.AcceptMessageResponse, error) {
	return one(ctx, r, s.store.AcceptMessages)
}

// FindMessage implements the gRPC service.
func (s *Server) FindMessage(
	ctx context.Context, r *taskstorev1.FindMessageRequest,
) (*taskstorev1.FindMessageResponse, error) {
	return call(ctx, r, s.store.FindMessage)
}

// StoreReply implements the gRPC service.
func (s *Server) StoreReply(
	ctx context.Context, r *taskstorev1.StoreReplyRequest,
) (*taskstorev1.StoreReplyResponse, error) {
	return one(ctx, r, s.store.StoreReplies)
}

// CancelTask implements the gRPC service.
func (s *Server) CancelTask(
	ctx context.Context, r *taskstorev1.CancelTaskRequest,
) (*taskstorev1.CancelTaskResponse, error) {
	return one(ctx, r, s.store.CancelTasks)
}

// ResumeTask implements the gRPC service.
func (s *Server) ResumeTask(
	ctx context.Context, r *taskstorev1.ResumeTaskRequest,
) (*taskstorev1.ResumeTaskResponse, error) {
	return one(ctx, r, s.store.ResumeTasks)
}

// GetTask implements the gRPC service.
func (s *Server) GetTask(ctx context.Context, r *taskstorev1.GetTaskRequest) (*taskstorev1.GetTaskResponse, error) {
	return call(ctx, r, s.store.GetTask)
}

// ListTasks implements the gRPC service.
func (s *Server) ListTasks(ctx context.Context, r *taskstorev1.ListTasksRequest) (*taskstorev1.ListTasksResponse, error) {
	return call(ctx, r, s.store.ListTasks)
}

// ListEvents implements the gRPC service.
func (s *Server) ListEvents(
	ctx context.Context, r *taskstorev1.ListEventsRequest,
) (*taskstorev1.ListEventsResponse, error) {
	return call(ctx, r, s.store.ListEvents)
}

// GetVersions implements the gRPC service.
func (s *Server) GetVersions(
	ctx context.Context, r *taskstorev1.GetVersionsRequest,
) (*taskstorev1.GetVersionsResponse, error) {
	return call(ctx, r, s.store.GetVersions)
}

// ClaimTasks implements the gRPC service.
func (s *Server) ClaimTasks(
	ctx context.Context, r *taskstorev1.ClaimTasksRequest,
) (*taskstorev1.ClaimTasksResponse, error) {
	return call(ctx, r, s.store.ClaimTasks)
}

// RenewLeases implements the gRPC service.
func (s *Server) RenewLeases(
	ctx context.Context, r *taskstorev1.RenewLeasesRequest,
) (*taskstorev1.RenewLeasesResponse, error) {
	return call(ctx, r, s.store.RenewLeases)
}

// ReleaseTasks implements the gRPC service.
func (s *Server) ReleaseTasks(
	ctx context.Context, r *taskstorev1.ReleaseTasksRequest,
) (*taskstorev1.ReleaseTasksResponse, error) {
	return call(ctx, r, s.store.ReleaseTasks)
}

// WriteEvents implements the gRPC service.
func (s *Server) WriteEvents(
	ctx context.Context, r *taskstorev1.WriteEventsRequest,
) (*taskstorev1.WriteEventsResponse, error) {
	return call(ctx, r, s.store.WriteEvents)
}

// ListUserMessages implements the gRPC service.
func (s *Server) ListUserMessages(
	ctx context.Context, r *taskstorev1.ListUserMessagesRequest,
) (*taskstorev1.ListUserMessagesResponse, error) {
	return call(ctx, r, s.store.ListUserMessages)
}

// GetContext implements the gRPC service.
func (s *Server) GetContext(
	ctx context.Context, r *taskstorev1.GetContextRequest,
) (*taskstorev1.GetContextResponse, error) {
	return call(ctx, r, s.store.GetContext)
}

// UpdateContext implements the gRPC service.
func (s *Server) UpdateContext(
	ctx context.Context, r *taskstorev1.UpdateContextRequest,
) (*taskstorev1.UpdateContextResponse, error) {
	return one(ctx, r, s.store.UpdateContexts)
}

// ListTurns implements the gRPC service.
func (s *Server) ListTurns(ctx context.Context, r *taskstorev1.ListTurnsRequest) (*taskstorev1.ListTurnsResponse, error) {
	return call(ctx, r, s.store.ListTurns)
}

// GetInfo implements the gRPC service.
func (s *Server) GetInfo(context.Context, *taskstorev1.GetInfoRequest) (*taskstorev1.GetInfoResponse, error) {
	return s.store.Info(), nil
}
