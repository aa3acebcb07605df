package operation

import (
	"context"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/proto"

	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"

	"github.com/errandhq/errand/services/gateway/internal/admission"
	"github.com/errandhq/errand/services/gateway/internal/validate"
)

// defaultPageSize is fixed by A2A §3.1.4.
const defaultPageSize = 50

// GetTask returns one task with all its artifacts (A2A §3.1.3).
func (s *Service) GetTask(ctx context.Context, r *a2apb.GetTaskRequest) (*a2apb.Task, error) {
	call, err := admission.Route(ctx, r.GetTenant(), r.GetId())
	if err != nil {
		return nil, err
	}
	if err := validate.Get(r, s.cfg.Limits); err != nil {
		return nil, err
	}
	got, err := s.cfg.Store.GetTask(ctx, &taskstorev1.GetTaskRequest{
		Scope: call.Scope(), TaskId: r.GetId(), HistoryLength: r.HistoryLength,
	})
	return got.GetTask(), err
}

// ListTasks returns one page of the sender's tasks (A2A §3.1.4). A page size is
// the default one when it is not set; a binding that cannot tell 0 from that
// unsets it.
func (s *Service) ListTasks(ctx context.Context, r *a2apb.ListTasksRequest) (*a2apb.ListTasksResponse, error) {
	call, err := admission.Route(ctx, r.GetTenant(), "")
	if err != nil {
		return nil, err
	}
	if r.PageSize == nil {
		r.PageSize = proto.Int32(defaultPageSize)
	}
	if err := validate.List(r, s.cfg.Limits); err != nil {
		return nil, err
	}
	page, err := s.cfg.Store.ListTasks(ctx, &taskstorev1.ListTasksRequest{
		Scope:                call.Scope(),
		ContextId:            r.GetContextId(),
		State:                r.GetStatus(),
		StatusTimestampAfter: r.GetStatusTimestampAfter(),
		PageSize:             r.GetPageSize(),
		PageToken:            r.GetPageToken(),
		HistoryLength:        r.HistoryLength,
		IncludeArtifacts:     r.GetIncludeArtifacts(),
	})
	if err != nil {
		return nil, err
	}
	return &a2apb.ListTasksResponse{
		Tasks:         page.GetTasks(),
		NextPageToken: page.GetNextPageToken(),
		PageSize:      r.GetPageSize(),
		TotalSize:     page.GetTotalSize(),
	}, nil
}

// CancelTask moves a task to CANCELED; again returns the task (A2A §3.1.5).
func (s *Service) CancelTask(ctx context.Context, r *a2apb.CancelTaskRequest) (*a2apb.Task, error) {
	call, err := admission.Route(ctx, r.GetTenant(), r.GetId())
	if err != nil {
		return nil, err
	}
	if err := validate.Cancel(r, s.cfg.Limits); err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx)
	canceled, err := s.cfg.Store.CancelTask(ctx, &taskstorev1.CancelTaskRequest{
		Scope: call.Scope(), TaskId: r.GetId(), Metadata: r.GetMetadata(),
	})
	return canceled.GetTask(), err
}
