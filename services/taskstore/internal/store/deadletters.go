package store

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// What an operator gets, or redrives, at once.
const (
	maxDeadLetters     = 1000
	defaultDeadLetters = 100
)

// ListDeadLetters reads a page of dead letters, newest first.
func (s *Store) ListDeadLetters(
	ctx context.Context, r *taskstorev1.ListDeadLettersRequest,
) (*taskstorev1.ListDeadLettersResponse, error) {
	answer, err := s.listDeadLetters(ctx, r)
	return answer, wrap("list dead letters", err)
}

func (s *Store) listDeadLetters(
	ctx context.Context, r *taskstorev1.ListDeadLettersRequest,
) (*taskstorev1.ListDeadLettersResponse, error) {
	q, err := deadLetterQuery(r.GetFilter())
	if err != nil {
		return nil, err
	}
	size, err := deadLetterCount("pageSize", r.GetPageSize())
	if err != nil {
		return nil, err
	}
	list := deadLettersOf(q)
	if r.GetPageToken() != "" {
		at, err := s.CursorKey.Decode(r.GetPageToken(), list...)
		if err != nil {
			return nil, a2aerr.Invalid("pageToken", "must be a token from an earlier page of the same list")
		}
		q.BeforeTime, q.BeforeID = at.Time, at.ID
	}
	q.Limit = size + 1
	found, err := s.engine.ListDeadLetters(ctx, q)
	if err != nil {
		return nil, err
	}
	answer := &taskstorev1.ListDeadLettersResponse{}
	if len(found) > size {
		found = found[:size]
		last := found[size-1]
		answer.NextPageToken = s.CursorKey.Encode(task.Cursor{Time: last.At, ID: last.TaskID}, list...)
	}
	for _, l := range found {
		answer.DeadLetters = append(answer.DeadLetters, toDeadLetter(l))
	}
	return answer, nil
}

func deadLetterCount(field string, n int32) (int, error) {
	switch {
	case n < 0 || n > maxDeadLetters:
		return 0, a2aerr.Invalid(field, "0 to "+strconv.Itoa(maxDeadLetters))
	case n == 0:
		return defaultDeadLetters, nil
	default:
		return int(n), nil
	}
}

func deadLetterQuery(f *taskstorev1.DeadLetterFilter) (engine.DeadLetterQuery, error) {
	q := engine.DeadLetterQuery{Tenant: f.GetTenant(), Agent: f.GetAgent(), Reason: f.GetReason()}
	if f != nil {
		q.Redriven = f.Redriven
	}
	for field, name := range map[string]string{"filter.tenant": q.Tenant, "filter.agent": q.Agent} {
		if name == "" {
			continue
		}
		if err := checkName(field, name); err != nil {
			return q, err
		}
	}
	if _, known := giveUpTexts[q.Reason]; !known && q.Reason != "" {
		return q, a2aerr.Invalid("filter.reason", strings.Join([]string{reasonAttempts, reasonRuntime, reasonInput}, ", "))
	}
	var err error
	if q.Since, err = boundOf("filter.since", f.GetSince()); err != nil {
		return q, err
	}
	q.Until, err = boundOf("filter.until", f.GetUntil())
	return q, err
}

// boundOf reads a bound of times that are cut to milliseconds.
func boundOf(field string, t *timestamppb.Timestamp) (time.Time, error) {
	if t == nil {
		return time.Time{}, nil
	}
	if !t.IsValid() {
		return time.Time{}, a2aerr.Invalid(field, "must be a time between the years 1 and 9999")
	}
	return roundUp(t.AsTime()), nil
}

// deadLettersOf is what a page token is bound to.
func deadLettersOf(q engine.DeadLetterQuery) []string {
	redriven := ""
	if q.Redriven != nil {
		redriven = strconv.FormatBool(*q.Redriven)
	}
	return []string{
		"dead letters", q.Tenant, q.Agent, q.Reason, redriven,
		strconv.FormatInt(q.Since.UnixMilli(), 10), strconv.FormatInt(q.Until.UnixMilli(), 10),
	}
}

func toDeadLetter(l engine.DeadLetter) *taskstorev1.DeadLetter {
	letter := &taskstorev1.DeadLetter{
		TaskId: l.TaskID, Tenant: l.Tenant, Agent: l.Agent, Owner: l.Owner, ContextId: l.ContextID,
		Reason: l.Reason, Attempts: l.Attempts, LastHolder: l.LastHolder, GivenUpAt: timestamppb.New(l.At),
	}
	if l.Redrive.TaskID != "" {
		letter.Redrive = &taskstorev1.Redrive{
			TaskId: l.Redrive.TaskID, Time: timestamppb.New(l.Redrive.At), By: l.Redrive.By,
		}
	}
	return letter
}
