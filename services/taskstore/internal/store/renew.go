package store

import (
	"context"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

// RenewLeases is the heartbeat for all tasks of one executor.
func (s *Store) RenewLeases(
	ctx context.Context, r *taskstorev1.RenewLeasesRequest,
) (*taskstorev1.RenewLeasesResponse, error) {
	if err := s.checkID("holder", r.GetHolder()); err != nil {
		return nil, err
	}
	if err := checkItems("leases", len(r.GetLeases())); err != nil {
		return nil, err
	}
	lease := r.GetLease().AsDuration()
	if lease <= 0 || lease > config.MaxLease {
		return nil, a2aerr.Invalid("lease", "more than 0 and at most "+config.MaxLease.String())
	}
	refs := make([]engine.LeaseRef, len(r.GetLeases()))
	for i, l := range r.GetLeases() {
		refs[i] = engine.LeaseRef{TaskID: l.GetTaskId(), Epoch: l.GetLeaseEpoch()}
	}
	renewals, err := s.engine.RenewLeases(ctx, r.GetHolder(), refs, cut(s.Now().Add(lease)))
	if err != nil {
		return nil, err
	}
	answer := &taskstorev1.RenewLeasesResponse{}
	for i, renewal := range renewals {
		result := &taskstorev1.RenewResult{TaskId: refs[i].TaskID, Refusal: renewalRefusal(renewal)}
		if renewal.Held {
			result.MessageVersion = renewal.MessageVersion
		}
		answer.Results = append(answer.Results, result)
	}
	return answer, nil
}

func renewalRefusal(r engine.Renewal) taskstorev1.Refusal {
	switch {
	case r.Held:
		return taskstorev1.Refusal_REFUSAL_UNSPECIFIED
	case !task.Known(r.State):
		return taskstorev1.Refusal_REFUSAL_NOT_FOUND
	case task.Terminal(r.State):
		return ended(r.State, r.Current)
	default:
		return taskstorev1.Refusal_REFUSAL_LEASE_LOST
	}
}
