package check

import (
	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/services/e2e/internal/binding"
)

// log: one event for each version from 1, which make the task together. It tells
// whether there is a state for each version.
func (c *checker) log(r *record) bool {
	if int64(len(r.log)) != r.version {
		c.violationf(r, Versions, "version %d, but %d events", r.version, len(r.log))
		return false
	}
	var t *a2apb.Task
	for i, e := range r.log {
		if e.GetVersion() != int64(i)+1 || (i == 0) != (e.GetCreated() != nil) {
			c.violationf(r, Versions, "event %d has version %d: %s", i+1, e.GetVersion(), shortEvent(response(e)))
			return false
		}
		c.move(r, t, e)
		next, err := advance(t, e)
		if err != nil {
			c.violationf(r, Versions, "version %d: %v", e.GetVersion(), err)
			return false
		}
		t = next
		r.states = append(r.states, t)
	}
	stored := proto.CloneOf(r.task)
	stored.History = nil
	if task.Terminal(r.task.GetStatus().GetState()) && !proto.Equal(stored, t) {
		c.violationf(r, Versions, "the log makes %v, the task is %v", t, stored)
	}
	return true
}

// advance is a new task: t after e.
func advance(t *a2apb.Task, e *eventv1.Event) (*a2apb.Task, error) {
	update := response(e)
	if update == nil {
		return t, nil
	}
	next, err := binding.Advance(proto.CloneOf(t), update)
	if err == nil {
		next.History = nil
	}
	return next, err
}

// move: nothing after the end, and no state from where it can't be reached.
func (c *checker) move(r *record, before *a2apb.Task, e *eventv1.Event) {
	if before == nil {
		return
	}
	from, to := before.GetStatus().GetState(), e.GetStatusUpdate().GetStatus().GetState()
	switch {
	case task.Terminal(from):
		c.violationf(r, Final, "version %d comes after %s: %s", e.GetVersion(), from, shortEvent(response(e)))
	case e.GetStatusUpdate() != nil && !task.CanMove(from, to):
		c.violationf(r, Final, "version %d moves from %s to %s", e.GetVersion(), from, to)
	case e.GetArtifactUpdate() != nil && from != task.Working:
		c.violationf(r, Final, "version %d is written in %s", e.GetVersion(), from)
	}
}
