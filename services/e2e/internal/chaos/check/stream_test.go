package check_test

import (
	"slices"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/services/e2e/internal/chaos/check"
	"github.com/errandhq/errand/services/e2e/internal/chaos/journal"
)

// late is longer than an event may be on its way.
const late = 20 * time.Second

type brokenStream struct {
	name  string
	found check.Kind
	do    func(c *journal.Connection)
}

// brokenStreams are broken on connections that begin with a Task.
var brokenStreams = []brokenStream{
	{"an event is skipped", check.Stream, func(c *journal.Connection) { c.Events = slices.Delete(c.Events, 2, 3) }},
	{"an event is repeated", check.Stream, func(c *journal.Connection) { c.Events = slices.Insert(c.Events, 2, c.Events[1]) }},
	{"two events are in the wrong order", check.Stream, func(c *journal.Connection) {
		c.Events[1], c.Events[2] = c.Events[2], c.Events[1]
	}},
	{"an event was never committed", check.Stream, func(c *journal.Connection) {
		for _, e := range c.Events {
			if u := e.Event.GetArtifactUpdate(); u != nil {
				u.Artifact.Parts = []*a2apb.Part{agent.Text("something else")}
			}
		}
	}},
	{"a stream ends before the task", check.Stream, func(c *journal.Connection) { c.Events = c.Events[:len(c.Events)-1] }},
	{"a stream begins without a Task", check.Stream, func(c *journal.Connection) { c.Events = c.Events[1:] }},
	{"events are late", check.Lag, func(c *journal.Connection) {
		for i := 1; i < len(c.Events); i++ {
			c.Events[i].At = c.Events[i].At.Add(late)
		}
	}},
	{"a stream says nothing more", check.Lag, func(c *journal.Connection) {
		c.Events, c.Ended, c.Closed = c.Events[:1], false, c.Closed.Add(late)
	}},
}

// marks are of connections over HTTP that begin with a Task, where a Task in the
// place of missed events says what it is.
var marks = []brokenStream{
	{"a Task in the place of events is marked", "", func(c *journal.Connection) { c.Events = slices.Insert(c.Events, 1, resync(c.Events[0])) }},
	{"a Task in the place of events is not marked", check.Stream, func(c *journal.Connection) { c.Events = slices.Insert(c.Events, 1, c.Events[0]) }},
	{"the Task at the begin is marked", check.Stream, func(c *journal.Connection) { c.Events[0] = resync(c.Events[0]) }},
	{"an update is marked", check.Stream, func(c *journal.Connection) { c.Events[2] = resync(c.Events[2]) }},
}

// resync is an event as if it stood for others.
func resync(e journal.Seen) journal.Seen {
	e.Resync = true
	return e
}

// brokenResumed are broken on connections that go on after an event.
var brokenResumed = []brokenStream{
	{"a resumed stream skips an event", check.Stream, func(c *journal.Connection) { c.Events = c.Events[1:] }},
	{"a resumed stream repeats an event", check.Stream, func(c *journal.Connection) { c.Resumed++ }},
	{"a resumed stream restarts from an older Task", check.Stream, func(c *journal.Connection) {
		c.Events[0].Event = &a2apb.StreamResponse{Payload: &a2apb.StreamResponse_Task{Task: &a2apb.Task{}}}
	}},
}
