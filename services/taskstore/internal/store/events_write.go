package store

import (
	"context"
	"time"

	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"google.golang.org/protobuf/proto"
)

// WriteEvents commits what handlers emitted: all events of a write, each with a
// version of its own, or none.
func (s *Store) WriteEvents(
	ctx context.Context, r *taskstorev1.WriteEventsRequest,
) (*taskstorev1.WriteEventsResponse, error) {
	if err := s.checkID("holder", r.GetHolder()); err != nil {
		return nil, err
	}
	if err := checkItems("writes", len(r.GetWrites())); err != nil {
		return nil, err
	}
	writes := make([]*eventWrite, len(r.GetWrites()))
	for i, w := range r.GetWrites() {
		writes[i] = &eventWrite{store: s, holder: r.GetHolder(), in: w, size: proto.Size(w)}
	}
	errs := do(ctx, s, writes)
	answer := &taskstorev1.WriteEventsResponse{}
	for i, c := range writes {
		result := &taskstorev1.WriteResult{TaskId: c.taskID(), Refusal: taskstorev1.Refusal_REFUSAL_UNAVAILABLE}
		if errs[i] == nil {
			result.Refusal, result.Version = c.refused, c.version
		}
		answer.Results = append(answer.Results, result)
	}
	return answer, wrap("write events", allFailed(errs))
}

// eventWrite is the change that commits the events of one task.
type eventWrite struct {
	store  *Store
	holder string
	in     *taskstorev1.TaskWrite
	size   int

	refused taskstorev1.Refusal
	version int64
}

func (c *eventWrite) taskID() string { return c.in.GetLease().GetTaskId() }

func (c *eventWrite) Keys() []any { return []any{c.taskID()} }

func (c *eventWrite) Size() int { return c.size }

func (c *eventWrite) selects(_ time.Time, sel *engine.Selection) {
	sel.Tasks = append(sel.Tasks, engine.TaskKey{ID: c.taskID()})
	seen := map[string]bool{}
	for _, e := range c.in.GetEvents() {
		id := e.GetArtifactUpdate().GetArtifact().GetArtifactId()
		if !seen[id] && validArtifactID(id, c.store.Agents.Limits.ID) {
			seen[id] = true
			sel.Artifacts = append(sel.Artifacts, engine.ArtifactKey{TaskID: c.taskID(), ArtifactID: id})
		}
	}
}

func (c *eventWrite) decide(now time.Time, rows *engine.Loaded) decision {
	t := rows.Tasks[c.taskID()]
	c.refused, c.version = 0, 0
	if c.repeats(t) {
		c.version = t.Version
		return decision{}
	}
	if c.refused = fence(t, c.holder, c.in.GetLease().GetLeaseEpoch()); c.refused != 0 {
		return decision{}
	}
	w := &taskWriter{draft: revise(now, t), limits: c.store.Agents.Limits, newID: c.store.NewID, artifacts: rows.Artifacts}
	if c.refused = c.apply(w); c.refused != 0 {
		return decision{}
	}
	w.row.WriteSeq = max(w.row.WriteSeq, c.in.GetSequence())
	c.version = w.row.Version
	return w.done()
}

// repeats tells whether this write was committed already. Its lease may be gone
// by now, with the turn that it settled.
func (c *eventWrite) repeats(t *engine.Task) bool {
	return t != nil && c.in.GetSequence() > 0 &&
		t.LeaseEpoch == c.in.GetLease().GetLeaseEpoch() && t.WriteSeq >= c.in.GetSequence()
}

func (c *eventWrite) apply(w *taskWriter) taskstorev1.Refusal {
	events := c.in.GetEvents()
	if len(events) == 0 || c.in.GetHandledVersion() > w.row.MessageVersion {
		return taskstorev1.Refusal_REFUSAL_INVALID_EVENT
	}
	for _, e := range events {
		if task.Settled(w.row.State) {
			return taskstorev1.Refusal_REFUSAL_INVALID_EVENT
		}
		if refused := w.add(e); refused != 0 {
			return refused
		}
	}
	if task.Settled(w.row.State) {
		return c.settle(w)
	}
	if c.in.GetGrant() != "" {
		return taskstorev1.Refusal_REFUSAL_INVALID_EVENT
	}
	return 0
}

// settle ends the turn, unless a message came that the handler hasn't seen.
func (c *eventWrite) settle(w *taskWriter) taskstorev1.Refusal {
	if w.row.MessageVersion > c.in.GetHandledVersion() {
		return taskstorev1.Refusal_REFUSAL_NEWER_MESSAGE
	}
	w.draft.settle()
	w.row.HandledVersion = c.in.GetHandledVersion()
	if c.in.GetGrant() != "" {
		if w.row.State != task.AuthRequired || len(c.in.GetGrant()) > maxGrant {
			return taskstorev1.Refusal_REFUSAL_INVALID_EVENT
		}
		w.row.GrantHash = hashGrant(c.in.GetGrant())
	}
	return 0
}

// maxGrant bounds a grant in bytes.
const maxGrant = 256
