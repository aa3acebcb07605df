package store

import (
	"errors"
	"fmt"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

// maxItems bounds the items of one call of an executor or a notifier.
const maxItems = 10_000

func checkItems(field string, n int) error {
	if n > maxItems {
		return a2aerr.Invalid(field, fmt.Sprintf("at most %d", maxItems))
	}
	return nil
}

// fence refuses the write of an executor that doesn't hold the task.
func fence(t *engine.Task, holder string, epoch int64) taskstorev1.Refusal {
	switch {
	case t == nil:
		return taskstorev1.Refusal_REFUSAL_NOT_FOUND
	case task.Terminal(t.State):
		return ended(t.State, t.LeaseEpoch == epoch)
	case t.Phase != engine.PhaseLeased || t.LeaseEpoch != epoch || t.Holder != holder:
		return taskstorev1.Refusal_REFUSAL_LEASE_LOST
	default:
		return taskstorev1.Refusal_REFUSAL_UNSPECIFIED
	}
}

// ended tells an executor how its task ended. A task whose lease epoch is another
// one went on without it, and its end is none of its business. Under its own lease
// the store itself fails a task for max_runtime alone: a lapse takes the lease away
// first.
func ended(state task.State, current bool) taskstorev1.Refusal {
	switch {
	case !current:
		return taskstorev1.Refusal_REFUSAL_LEASE_LOST
	case state == task.Canceled:
		return taskstorev1.Refusal_REFUSAL_CANCELED
	case state == task.Failed:
		return taskstorev1.Refusal_REFUSAL_OVERRUN
	default:
		return taskstorev1.Refusal_REFUSAL_TERMINAL
	}
}

// allFailed is the error of a call whose every item failed. If some went
// through, the caller must hear of those, and the others are refusals.
func allFailed(errs []error) error {
	for _, err := range errs {
		if err == nil {
			return nil
		}
	}
	return errors.Join(errs...)
}
