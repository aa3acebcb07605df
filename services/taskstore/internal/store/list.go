package store

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

const (
	maxPage = 100
	// Up to here the total of a list is exact (A2A §3.1.4 wants one, and counting
	// millions for each page would be all that a store does).
	exactTotal = 10_000
)

// ListTasks reads a page of tasks, newest status first.
func (s *Store) ListTasks(ctx context.Context, r *taskstorev1.ListTasksRequest) (*taskstorev1.ListTasksResponse, error) {
	answer, err := s.listTasks(ctx, r)
	return answer, wrap("list tasks", err)
}

func (s *Store) listTasks(ctx context.Context, r *taskstorev1.ListTasksRequest) (*taskstorev1.ListTasksResponse, error) {
	q, err := s.listQuery(r)
	if err != nil {
		return nil, err
	}
	found, err := s.engine.ListTasks(ctx, q)
	if err != nil {
		return nil, err
	}
	answer := &taskstorev1.ListTasksResponse{}
	page := s.fitting(found, int(r.GetPageSize()))
	if len(page) < len(found) {
		last := page[len(page)-1].Task
		answer.NextPageToken = s.CursorKey.Encode(task.Cursor{Time: last.StatusTime, ID: last.ID}, listOf(q)...)
	}
	if answer.Tasks, err = s.contents(ctx, q, page, s.listDetail(r)); err != nil {
		return nil, err
	}
	if r.GetPageToken() == "" && answer.GetNextPageToken() == "" {
		answer.TotalSize = int32(len(page)) //nolint:gosec // at most a page
		return answer, nil
	}
	total, err := s.engine.CountTasks(ctx, q, exactTotal)
	answer.TotalSize = int32(min(total, math.MaxInt32)) //nolint:gosec // just cut
	return answer, err
}

// fitting is as many of the first tasks as an answer may have and carry, one at
// least. Each is bounded, but a page full of them would not be.
func (s *Store) fitting(found []*engine.Snapshot, atMost int) []*engine.Snapshot {
	bytes := int64(0)
	for i, snapshot := range found {
		bytes += snapshot.Task.ContentBytes
		if i == atMost || i > 0 && bytes > int64(s.Agents.Limits.Artifacts) {
			return found[:i]
		}
	}
	return found
}

// contents completes tasks of which the rows were read.
func (s *Store) contents(
	ctx context.Context, q engine.ListQuery, rows []*engine.Snapshot, detail engine.Detail,
) ([]*a2apb.Task, error) {
	if detail != (engine.Detail{}) {
		found, err := s.engine.ReadTasks(ctx, q.Scope, idsOf(rows), detail)
		if err != nil {
			return nil, err
		}
		rows = inPlace(q, rows, found)
	}
	tasks := make([]*a2apb.Task, len(rows))
	for i, snapshot := range rows {
		var err error
		if tasks[i], err = toTask(snapshot); err != nil {
			return nil, err
		}
	}
	return tasks, nil
}

// inPlace leaves out those found that got another status since their rows were
// read, for they have another place now. On the first page that place is before
// all others, so they stay unless they don't match any more.
func inPlace(q engine.ListQuery, rows, found []*engine.Snapshot) []*engine.Snapshot {
	placed := make(map[string]int64, len(rows))
	for _, snapshot := range rows {
		placed[snapshot.Task.ID] = snapshot.Task.StatusVersion
	}
	first := q.BeforeID == ""
	found = slices.DeleteFunc(found, func(snapshot *engine.Snapshot) bool {
		t := snapshot.Task
		stays := first && (q.State == a2apb.TaskState_TASK_STATE_UNSPECIFIED || q.State == t.State)
		return t.StatusVersion != placed[t.ID] && !stays
	})
	slices.SortStableFunc(found, func(a, b *engine.Snapshot) int {
		return cmp.Or(b.Task.StatusTime.Compare(a.Task.StatusTime), cmp.Compare(a.Task.ID, b.Task.ID))
	})
	return found
}

func (s *Store) listDetail(r *taskstorev1.ListTasksRequest) engine.Detail {
	return engine.Detail{History: s.historyLength(r.HistoryLength), Artifacts: r.GetIncludeArtifacts()}
}

// listQuery asks for one task more than the page has, to see whether it is the last.
func (s *Store) listQuery(r *taskstorev1.ListTasksRequest) (engine.ListQuery, error) {
	scope, err := s.scope(r.GetScope())
	if err != nil {
		return engine.ListQuery{}, err
	}
	if err := s.checkID("scope.agent", scope.Agent); err != nil {
		return engine.ListQuery{}, err
	}
	if r.GetContextId() != "" {
		if err := s.checkID("contextId", r.GetContextId()); err != nil {
			return engine.ListQuery{}, err
		}
	}
	if n := r.GetPageSize(); n < 1 || n > maxPage {
		return engine.ListQuery{}, a2aerr.Invalid("pageSize", "1 to "+strconv.Itoa(maxPage))
	}
	if err := s.checkHistoryLength(r.HistoryLength); err != nil {
		return engine.ListQuery{}, err
	}
	q := engine.ListQuery{
		Scope: scope, ContextID: r.GetContextId(), State: r.GetState(), Limit: int(r.GetPageSize()) + 1,
	}
	if since := r.GetStatusTimestampAfter(); since != nil {
		if !since.IsValid() {
			return engine.ListQuery{}, a2aerr.Invalid("statusTimestampAfter", "must be a time between the years 1 and 9999")
		}
		q.StatusSince = roundUp(since.AsTime())
	}
	if r.GetPageToken() != "" {
		at, err := s.CursorKey.Decode(r.GetPageToken(), listOf(q)...)
		if err != nil {
			return engine.ListQuery{}, a2aerr.Invalid("pageToken", "must be a token from an earlier page of the same list")
		}
		q.BeforeTime, q.BeforeID = at.Time, at.ID
	}
	return q, nil
}

// listOf is what a page token is bound to.
func listOf(q engine.ListQuery) []string {
	return []string{
		q.Scope.Tenant, q.Scope.Agent, q.Scope.Owner, q.ContextID, q.State.String(), strconv.FormatInt(q.StatusSince.UnixMilli(), 10),
	}
}

// roundUp keeps an inclusive lower bound exact for times in milliseconds.
func roundUp(t time.Time) time.Time {
	if c := cut(t); c.Equal(t) {
		return c
	}
	return cut(t).Add(time.Millisecond)
}
