package store

import (
	"context"
	"time"

	"github.com/errandhq/errand/pkg/a2aerr"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

// maxDelay bounds how long a task waits for its next attempt.
const maxDelay = 24 * time.Hour

// ReleaseTasks gives leases back before the turn is settled: the tasks are
// queued again, or given up when their attempts are used up.
func (s *Store) ReleaseTasks(
	ctx context.Context, r *taskstorev1.ReleaseTasksRequest,
) (*taskstorev1.ReleaseTasksResponse, error) {
	if err := s.checkID("holder", r.GetHolder()); err != nil {
		return nil, err
	}
	if err := checkItems("releases", len(r.GetReleases())); err != nil {
		return nil, err
	}
	releases := make([]*release, len(r.GetReleases()))
	for i, one := range r.GetReleases() {
		delay := one.GetDelay().AsDuration()
		if delay < 0 || delay > maxDelay {
			return nil, a2aerr.Invalid("releases.delay", "0 to "+maxDelay.String())
		}
		releases[i] = &release{
			store: s, holder: r.GetHolder(),
			lease:  engine.LeaseRef{TaskID: one.GetLease().GetTaskId(), Epoch: one.GetLease().GetLeaseEpoch()},
			failed: one.GetFailed(), delay: delay,
		}
	}
	errs := do(ctx, s, releases)
	answer := &taskstorev1.ReleaseTasksResponse{}
	for i, c := range releases {
		result := &taskstorev1.ReleaseResult{TaskId: c.lease.TaskID, Refusal: taskstorev1.Refusal_REFUSAL_UNAVAILABLE}
		if errs[i] == nil {
			result.Refusal = c.refused
		}
		answer.Results = append(answer.Results, result)
	}
	return answer, wrap("release tasks", allFailed(errs))
}

type release struct {
	store  *Store
	holder string
	lease  engine.LeaseRef
	failed bool
	delay  time.Duration

	refused taskstorev1.Refusal
}

func (c *release) Keys() []any { return []any{c.lease.TaskID} }

func (c *release) Size() int { return len(c.lease.TaskID) }

func (c *release) selects(_ time.Time, sel *engine.Selection) {
	sel.Tasks = append(sel.Tasks, engine.TaskKey{ID: c.lease.TaskID})
}

func (c *release) decide(now time.Time, rows *engine.Loaded) decision {
	t := rows.Tasks[c.lease.TaskID]
	if c.refused = fence(t, c.holder, c.lease.Epoch); c.refused != 0 {
		return decision{}
	}
	d := revise(now, t)
	if !c.failed {
		d.row.Attempt = max(0, d.row.Attempt-1)
	}
	if c.failed && c.store.exhausted(t) {
		c.store.giveUp(d, reasonAttempts)
		return d.done()
	}
	d.unlease()
	if c.delay == 0 {
		d.queue()
	} else {
		d.delay(c.delay)
	}
	return d.done()
}
