package check

import (
	"fmt"
	"strings"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/services/e2e/internal/chaos/journal"
)

// runs: a run that another one followed writes no more, and what runs wrote is
// whole.
func (c *checker) runs(r *record) {
	c.order(r)
	for v, state := range r.states {
		if r.log[v].GetArtifactUpdate() != nil && !c.whole(r, int64(v)+1, state) {
			return
		}
	}
	c.settled(r)
	c.complete(r)
}

// order: the writes of one run stand together, in the order in which the runs began.
func (c *checker) order(r *record) {
	begun := map[string]journal.Run{}
	for _, run := range r.runs {
		begun[run.ID] = run
	}
	last := ""
	over := map[string]bool{}
	for _, e := range r.log {
		id := writer(response(e))
		if id == "" || id == last {
			continue
		}
		run, noted := begun[id]
		switch {
		case over[id]:
			c.violationf(r, Fenced, "run %s writes version %d after run %s", id, e.GetVersion(), last)
		case !noted && len(c.Runs) > 0:
			c.violationf(r, Fenced, "run %s writes version %d, and has not begun", id, e.GetVersion())
		case run.Begun.Before(begun[last].Begun):
			c.violationf(r, Fenced, "run %s writes version %d after run %s, which began later", id, e.GetVersion(), last)
		}
		over[last], last = true, id
	}
}

// writer is the run that signed an event; empty if none did.
func writer(e *a2apb.StreamResponse) string {
	text := agent.TextOf(e.GetStatusUpdate().GetStatus().GetMessage())
	if parts := e.GetArtifactUpdate().GetArtifact().GetParts(); len(parts) > 0 {
		text = parts[0].GetText()
	}
	if run, _, signed := journal.Signed(text); signed {
		return run
	}
	return ""
}

// whole: each artifact is one run's, its chunks from the first on without a gap.
func (c *checker) whole(r *record, v int64, t *a2apb.Task) bool {
	for _, a := range t.GetArtifacts() {
		first, _, _ := journal.Signed(a.GetParts()[0].GetText())
		for i, p := range a.GetParts() {
			run, text, _ := journal.Signed(p.GetText())
			var n, total int
			_, err := fmt.Sscanf(text, "chunk %d/%d", &n, &total)
			if run != first || err == nil && n != i+1 {
				c.violationf(r, Fenced, "at version %d part %d of artifact %s, begun by run %s, is %q", v, i+1, a.GetArtifactId(), first, p.GetText())
				return false
			}
		}
	}
	return true
}

// settled: a handler that could settle the turn has.
func (c *checker) settled(r *record) {
	for _, run := range r.runs {
		want, has := map[string]a2apb.TaskState{
			"completed": task.Completed, "failed": task.Failed, "asked": task.InputRequired,
		}[run.Result]
		if has && !r.has(run.ID, want) {
			c.violationf(r, Told, "run %s was told that it %s, the log has no %s by it", run.ID, run.Result, want)
		}
	}
}

// has tells whether a run moved the task to a state.
func (r *record) has(run string, state a2apb.TaskState) bool {
	for _, e := range r.log {
		if e.GetStatusUpdate().GetStatus().GetState() == state && writer(response(e)) == run {
			return true
		}
	}
	return false
}

// complete: a task that completed has what its messages wanted, from the run
// that completed it.
func (c *checker) complete(r *record) {
	if r.task.GetStatus().GetState() != task.Completed {
		return
	}
	last := writer(response(r.log[len(r.log)-1]))
	want, known := r.wanted(c.book, last)
	if !known {
		return
	}
	got := map[string][]string{}
	for _, a := range r.task.GetArtifacts() {
		for _, p := range a.GetParts() {
			got[a.GetArtifactId()] = append(got[a.GetArtifactId()], p.GetText())
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		c.violationf(r, Fenced, "completed by run %s with %v instead of %v", last, got, want)
	}
}

// wanted is what the artifacts of a completed task hold; not known where nobody
// sent a message of it.
func (r *record) wanted(b *book, run string) (want map[string][]string, known bool) {
	want = map[string][]string{}
	for id, v := range r.accepted {
		m := b.messages[id]
		if m == nil {
			return nil, false
		}
		if v > 1 {
			want["answer"] = []string{journal.Sign(run, journal.Quote(m.Text))}
			continue
		}
		var n, apart int
		if _, err := fmt.Sscanf(strings.TrimPrefix(m.Text, "ask "), "steps %d %d", &n, &apart); err != nil {
			continue
		}
		for i := range n {
			want["a1"] = append(want["a1"], journal.Sign(run, journal.Chunk(i+1, n)))
		}
	}
	return want, true
}
