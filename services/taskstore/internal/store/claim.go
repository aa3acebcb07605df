package store

import (
	"context"
	"errors"
	"time"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// ClaimTasks gives queued tasks to an executor.
func (s *Store) ClaimTasks(
	ctx context.Context, r *taskstorev1.ClaimTasksRequest,
) (*taskstorev1.ClaimTasksResponse, error) {
	lease, err := s.checkClaims(r)
	if err != nil {
		return nil, err
	}
	claims := make([]*claim, len(r.GetTasks()))
	for i, ref := range r.GetTasks() {
		scope := engine.Scope{Tenant: ref.GetTenant(), Agent: r.GetAgent()}
		claims[i] = &claim{key: engine.TaskKey{Scope: scope, ID: ref.GetTaskId()}, holder: r.GetHolder(), lease: lease}
	}
	errs := do(ctx, s, claims)
	answer := &taskstorev1.ClaimTasksResponse{}
	carried := int64(0)
	for i, c := range claims {
		result := &taskstorev1.ClaimResult{TaskId: c.key.ID}
		fits := carried == 0 || carried+c.content <= int64(s.Agents.Limits.Artifacts)
		if errs[i] == nil && fits {
			errs[i] = s.claimed(ctx, c, result)
			carried += c.content
		}
		if errs[i] != nil || !fits {
			result.Outcome = &taskstorev1.ClaimResult_Refusal{Refusal: taskstorev1.Refusal_REFUSAL_UNAVAILABLE}
		}
		answer.Results = append(answer.Results, result)
	}
	return answer, wrap("claim tasks", errors.Join(allFailed(errs), s.giveBack(ctx, r.GetHolder(), claims, answer)))
}

// giveBack releases what was claimed and not handed over, because it could not be
// read or was too much for one answer. No attempt is used up by it.
func (s *Store) giveBack(ctx context.Context, holder string, claims []*claim, answer *taskstorev1.ClaimTasksResponse) error {
	r := &taskstorev1.ReleaseTasksRequest{Holder: holder}
	for i, c := range claims {
		if c.epoch > 0 && answer.GetResults()[i].GetRefusal() == taskstorev1.Refusal_REFUSAL_UNAVAILABLE {
			r.Releases = append(r.Releases, &taskstorev1.Release{
				Lease: &taskstorev1.LeaseRef{TaskId: c.key.ID, LeaseEpoch: c.epoch},
			})
		}
	}
	if len(r.GetReleases()) == 0 {
		return nil
	}
	_, err := s.ReleaseTasks(ctx, r)
	return err
}

func (s *Store) checkClaims(r *taskstorev1.ClaimTasksRequest) (time.Duration, error) {
	if err := s.checkID("agent", r.GetAgent()); err != nil {
		return 0, err
	}
	if err := s.checkID("holder", r.GetHolder()); err != nil {
		return 0, err
	}
	if err := checkItems("tasks", len(r.GetTasks())); err != nil {
		return 0, err
	}
	for _, ref := range r.GetTasks() {
		if err := s.checkID("tasks.tenant", ref.GetTenant()); err != nil {
			return 0, err
		}
	}
	return s.leaseOf(r.GetLease().AsDuration(), s.Agents.Settings(r.GetAgent()).Lease.Value())
}

// leaseOf is how long a lease holds: what was asked for, or the agent's default.
func (s *Store) leaseOf(asked, byDefault time.Duration) (time.Duration, error) {
	if asked == 0 {
		asked = byDefault
	}
	if asked <= 0 || asked > config.MaxLease {
		return 0, a2aerr.Invalid("lease", "more than 0 and at most "+config.MaxLease.String())
	}
	return asked, nil
}

type claim struct {
	key    engine.TaskKey
	holder string
	lease  time.Duration

	refused taskstorev1.Refusal
	// Under which the holder has the task already.
	held    int64
	epoch   int64
	content int64
	turnAge time.Duration
}

func (c *claim) Keys() []any { return []any{c.key.ID} }

func (c *claim) Size() int { return len(c.key.ID) }

func (c *claim) selects(_ time.Time, sel *engine.Selection) { sel.Tasks = append(sel.Tasks, c.key) }

func (c *claim) decide(now time.Time, rows *engine.Loaded) decision {
	t := rows.Tasks[c.key.ID]
	c.epoch, c.content, c.held = 0, 0, 0
	if c.refused = c.refuse(now, t); c.refused != 0 {
		if t != nil && t.Phase == engine.PhaseLeased && t.Holder == c.holder {
			c.held = t.LeaseEpoch
		}
		return decision{}
	}
	d := revise(now, t)
	d.row.Phase = engine.PhaseLeased
	d.row.QueuedAt, d.row.DueAt = time.Time{}, time.Time{}
	d.row.LeaseEpoch++
	d.row.WriteSeq = 0
	d.row.Holder = c.holder
	d.row.Attempt++
	if d.row.TurnStartedAt.IsZero() {
		d.row.TurnStartedAt = now
	}
	c.turnAge = now.Sub(d.row.TurnStartedAt)
	if t.State == task.Submitted {
		d.status(task.Working, nil, nil)
	}
	c.epoch, c.content = d.row.LeaseEpoch, d.row.ContentBytes
	d.changes.PutLeases = []engine.Lease{{
		LeaseRef: engine.LeaseRef{TaskID: t.ID, Epoch: c.epoch}, Holder: c.holder, ExpiresAt: now.Add(c.lease),
	}}
	return d.done()
}

func (c *claim) refuse(now time.Time, t *engine.Task) taskstorev1.Refusal {
	switch {
	case t == nil:
		return taskstorev1.Refusal_REFUSAL_NOT_FOUND
	case task.Terminal(t.State):
		return taskstorev1.Refusal_REFUSAL_TERMINAL
	case t.Phase != engine.PhaseQueued || t.DueAt.After(now):
		return taskstorev1.Refusal_REFUSAL_NOT_QUEUED
	default:
		return taskstorev1.Refusal_REFUSAL_UNSPECIFIED
	}
}

// claimed fills in the result of a claim: the task as it is now, if it is still
// the claim's.
func (s *Store) claimed(ctx context.Context, c *claim, result *taskstorev1.ClaimResult) error {
	refuse := func(why taskstorev1.Refusal) error {
		result.Outcome = &taskstorev1.ClaimResult_Refusal{Refusal: why}
		return nil
	}
	if c.refused != 0 {
		result.HeldEpoch = c.held
		return refuse(c.refused)
	}
	found, err := s.engine.ReadTasks(ctx, c.key.Scope, []string{c.key.ID}, engine.Detail{History: -1, Artifacts: true})
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return refuse(taskstorev1.Refusal_REFUSAL_NOT_FOUND)
	case task.Terminal(found[0].Task.State):
		return refuse(taskstorev1.Refusal_REFUSAL_TERMINAL)
	case found[0].Task.Phase != engine.PhaseLeased || found[0].Task.LeaseEpoch != c.epoch:
		return refuse(taskstorev1.Refusal_REFUSAL_LEASE_LOST)
	}
	held, err := toClaim(found[0], c.turnAge)
	result.Outcome = &taskstorev1.ClaimResult_Claim{Claim: held}
	return err
}

func toClaim(s *engine.Snapshot, turnAge time.Duration) (*taskstorev1.Claim, error) {
	t, err := toTask(s)
	if err != nil {
		return nil, err
	}
	c := &taskstorev1.Claim{
		Task: t, Version: s.Task.Version, Tenant: s.Task.Tenant, Owner: s.Task.Owner,
		LeaseEpoch: s.Task.LeaseEpoch, Attempt: s.Task.Attempt,
		HandledVersion: s.Task.HandledVersion, TurnStarted: timestamppb.New(s.Task.TurnStartedAt), TurnAge: durationpb.New(turnAge),
	}
	for _, row := range s.History {
		if row.Kind != engine.MessageUser {
			continue
		}
		m, err := toUserMessage(row)
		if err != nil {
			return nil, err
		}
		c.Messages = append(c.Messages, m)
	}
	return c, nil
}
