package operation

import (
	"context"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/services/gateway/internal/admission"
)

// The cards declare no push notifications, so the four operations on their
// configurations are refused before they look at anything (A2A §3.3.4).

// CreateTaskPushNotificationConfig is refused.
func (s *Service) CreateTaskPushNotificationConfig(
	ctx context.Context, r *a2apb.TaskPushNotificationConfig,
) (*a2apb.TaskPushNotificationConfig, error) {
	return nil, noPush(ctx, r.GetTenant(), r.GetTaskId())
}

// GetTaskPushNotificationConfig is refused.
func (s *Service) GetTaskPushNotificationConfig(
	ctx context.Context, r *a2apb.GetTaskPushNotificationConfigRequest,
) (*a2apb.TaskPushNotificationConfig, error) {
	return nil, noPush(ctx, r.GetTenant(), r.GetTaskId())
}

// ListTaskPushNotificationConfigs is refused.
func (s *Service) ListTaskPushNotificationConfigs(
	ctx context.Context, r *a2apb.ListTaskPushNotificationConfigsRequest,
) (*a2apb.ListTaskPushNotificationConfigsResponse, error) {
	return nil, noPush(ctx, r.GetTenant(), r.GetTaskId())
}

// DeleteTaskPushNotificationConfig is refused.
func (s *Service) DeleteTaskPushNotificationConfig(
	ctx context.Context, r *a2apb.DeleteTaskPushNotificationConfigRequest,
) (*emptypb.Empty, error) {
	return nil, noPush(ctx, r.GetTenant(), r.GetTaskId())
}

func noPush(ctx context.Context, routingID, taskID string) error {
	if _, err := admission.Route(ctx, routingID, taskID); err != nil {
		return err
	}
	return a2aerr.PushNotificationNotSupported()
}

// GetExtendedAgentCard is refused: no card declares an extended one (A2A §3.1.11).
func (s *Service) GetExtendedAgentCard(ctx context.Context, r *a2apb.GetExtendedAgentCardRequest) (*a2apb.AgentCard, error) {
	if _, err := admission.Route(ctx, r.GetTenant(), ""); err != nil {
		return nil, err
	}
	return nil, a2aerr.UnsupportedOperation("this agent declares no extended card")
}
