package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/errandhq/errand/pkg/a2aerr"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

const (
	// maxRedrivenBy bounds the name of who redrives, in bytes.
	maxRedrivenBy = 256
	// redriveReserve is how long before its deadline a call begins no further one, so
	// that the operator hears of those that were redriven.
	redriveReserve = time.Second
)

// RedriveDeadLetters makes a new task of each dead letter, one after the other:
// what was done before a failure stays done, and is answered as such when it is
// asked for again.
func (s *Store) RedriveDeadLetters(
	ctx context.Context, r *taskstorev1.RedriveDeadLettersRequest,
) (*taskstorev1.RedriveDeadLettersResponse, error) {
	ids, err := s.toRedrive(ctx, r)
	if err != nil {
		return nil, wrap("find dead letters", err)
	}
	answer := &taskstorev1.RedriveDeadLettersResponse{}
	errs := make([]error, len(ids))
	for i, id := range ids {
		result := &taskstorev1.RedriveResult{TaskId: id, Outcome: taskstorev1.RedriveOutcome_REDRIVE_OUTCOME_UNAVAILABLE}
		answer.Results = append(answer.Results, result)
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < redriveReserve {
			continue
		}
		errs[i] = s.redriveOne(ctx, r, result)
	}
	return answer, wrap("redrive dead letters", allFailed(errs))
}

// toRedrive is which dead letters are meant.
func (s *Store) toRedrive(ctx context.Context, r *taskstorev1.RedriveDeadLettersRequest) ([]string, error) {
	if by := r.GetBy(); len(by) > maxRedrivenBy || strings.ContainsRune(by, 0) {
		return nil, a2aerr.Invalid("by", fmt.Sprintf("at most %d bytes without U+0000", maxRedrivenBy))
	}
	switch ids := r.GetTaskIds(); {
	case (len(ids) > 0) == (r.GetFilter() != nil):
		return nil, a2aerr.Invalid("taskIds", "must be present, or else filter")
	case len(ids) > maxDeadLetters:
		return nil, a2aerr.Invalid("taskIds", fmt.Sprintf("at most %d", maxDeadLetters))
	case len(ids) > 0:
		return ids, nil
	case r.GetFilter().GetRedriven():
		return nil, a2aerr.Invalid("filter.redriven", "must be absent or false")
	}
	q, err := deadLetterQuery(r.GetFilter())
	if err != nil {
		return nil, err
	}
	redriven := false
	q.Redriven = &redriven
	if q.Limit, err = deadLetterCount("limit", r.GetLimit()); err != nil {
		return nil, err
	}
	letters, err := s.engine.ListDeadLetters(ctx, q)
	ids := make([]string, len(letters))
	for i, l := range letters {
		ids[i] = l.TaskID
	}
	return ids, err
}

func (s *Store) redriveOne(
	ctx context.Context, r *taskstorev1.RedriveDeadLettersRequest, result *taskstorev1.RedriveResult,
) error {
	letter, err := s.engine.ReadDeadLetter(ctx, result.GetTaskId())
	switch {
	case errors.Is(err, engine.ErrNotFound):
		result.Outcome = taskstorev1.RedriveOutcome_REDRIVE_OUTCOME_NOT_FOUND
		return nil
	case err != nil:
		return err
	case letter.Redrive.TaskID != "":
		result.Outcome = taskstorev1.RedriveOutcome_REDRIVE_OUTCOME_ALREADY_REDRIVEN
		result.NewTaskId = letter.Redrive.TaskID
		return nil
	case r.GetDryRun():
		result.Outcome = taskstorev1.RedriveOutcome_REDRIVE_OUTCOME_REDRIVEN
		return nil
	}
	c, err := s.newRedrive(ctx, letter, r.GetBy())
	if err != nil {
		return err
	}
	if err := do(ctx, s, []*redrive{c})[0]; err != nil {
		return err
	}
	result.Outcome, result.NewTaskId = c.outcome, c.madeTask
	return nil
}
