package check_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/services/e2e/internal/chaos/check"
	"github.com/errandhq/errand/services/e2e/internal/chaos/journal"
)

// doctor changes a copy of a recording.
type doctor struct {
	*testing.T
	*recording

	config check.Config
}

// clone copies all that a doctor may change.
func (r *recording) clone() *recording {
	out := &recording{runs: slices.Clone(r.runs)}
	for _, m := range r.messages {
		m := *m
		m.Attempts = slices.Clone(m.Attempts)
		for i := range m.Attempts {
			m.Attempts[i].Task = proto.CloneOf(m.Attempts[i].Task)
		}
		out.messages = append(out.messages, &m)
	}
	for _, s := range r.streams {
		s := *s
		s.Connections = slices.Clone(s.Connections)
		for i, c := range s.Connections {
			s.Connections[i].Events = slices.Clone(c.Events)
			for k, e := range c.Events {
				s.Connections[i].Events[k].Event = proto.CloneOf(e.Event)
			}
		}
		out.streams = append(out.streams, &s)
	}
	for _, s := range r.tasks {
		next := &stored{agent: s.agent, task: proto.CloneOf(s.task)}
		for _, e := range s.log {
			next.log = append(next.log, proto.CloneOf(e))
		}
		out.tasks = append(out.tasks, next)
	}
	out.cancels, out.reads = slices.Clone(r.cancels), slices.Clone(r.reads)
	return out
}

// quiet are tasks of several chunks that completed, and of which their sender
// was told nothing but that they are submitted.
func (d *doctor) quiet() []*stored {
	told := map[string]int{}
	started := map[string]*journal.Message{}
	for _, m := range d.messages {
		for _, a := range m.Attempts {
			told[a.Task.GetId()]++
			started[a.Task.GetId()] = m
		}
	}
	for _, r := range d.reads {
		told[r.TaskID] += 2
	}
	for _, s := range d.streams {
		told[s.TaskID] += 2
	}
	for _, c := range d.cancels {
		told[c.TaskID] += 2
	}
	var found []*stored
	for _, s := range d.tasks {
		m := started[s.task.GetId()]
		if told[s.task.GetId()] == 1 && strings.HasPrefix(m.Text, "steps") && len(s.log) >= 6 &&
			m.Attempts[0].Task.GetStatus().GetState() == task.Submitted {
			found = append(found, s)
		}
	}
	require.GreaterOrEqual(d, len(found), 5, "more than one in a hundred of all tasks")
	return found
}

// ended is any task that ended in a state.
func (d *doctor) ended(state a2apb.TaskState) *stored {
	for _, s := range d.tasks {
		if s.task.GetStatus().GetState() == state {
			return s
		}
	}
	require.Fail(d, "no task is "+state.String())
	return nil
}

// messageOf is the one that started a task.
func (d *doctor) messageOf(s *stored) *journal.Message {
	id := s.log[0].GetCreated().GetHistory()[0].GetMessageId()
	i := slices.IndexFunc(d.messages, func(m *journal.Message) bool { return m.MessageID == id })
	return d.messages[i]
}

// connection is one over a binding on which something was seen: after a Task, or
// after an event that was seen before, at least three events, some of them chunks,
// none of which stands for others.
func (d *doctor) connection(binding string, resumed bool) *journal.Connection {
	for _, s := range d.streams {
		last := len(s.Connections) - 1
		c := &s.Connections[last]
		whole := len(c.Events) >= 4 && !slices.ContainsFunc(c.Events[1:], func(e journal.Seen) bool { return e.Event.GetTask() != nil })
		chunks := slices.ContainsFunc(c.Events, func(e journal.Seen) bool { return e.Event.GetArtifactUpdate() != nil })
		if whole && chunks && c.Binding == binding && c.Ended && (c.Resumed > 0) == resumed && c.Events[0].Event.GetTask() == nil == resumed {
			return c
		}
	}
	require.Fail(d, "no such connection")
	return nil
}

// snapshot is the task of a connection in the place of its last event.
func (d *doctor) snapshot(c *journal.Connection) journal.Seen {
	last := c.Events[len(c.Events)-1]
	for _, s := range d.tasks {
		if s.task.GetId() == last.Event.GetStatusUpdate().GetTaskId() {
			last.Event = &a2apb.StreamResponse{Payload: &a2apb.StreamResponse_Task{Task: s.final()}}
			return last
		}
	}
	require.Fail(d, "no task of this connection")
	return last
}

// unfinish makes nothing known of how the runs of a task ended.
func (d *doctor) unfinish(s *stored) {
	for i := range d.runs {
		if d.runs[i].TaskID == s.task.GetId() {
			d.runs[i].Ended, d.runs[i].Result = time.Time{}, ""
		}
	}
}

// fail has a task end in FAILED.
func (d *doctor) fail(s *stored) {
	d.unfinish(s)
	last := s.log[len(s.log)-1].GetStatusUpdate()
	last.Status.State = task.Failed
	s.task.Status = last.GetStatus()
}

// delay has the runs of a task begin late.
func (d *doctor) delay(s *stored) {
	for i := range d.runs {
		if d.runs[i].TaskID == s.task.GetId() {
			d.runs[i].Begun = d.runs[i].Begun.Add(2 * late)
		}
	}
}

// interrupt has something done to the cluster for as long as a task was open.
func (d *doctor) interrupt(target string, s *stored, times int) {
	for i := range times {
		d.config.Interruptions = append(d.config.Interruptions, journal.Interruption{
			Begun: s.log[0].GetTime().AsTime().Add(time.Duration(i)), Ended: s.log[len(s.log)-1].GetTime().AsTime(), Kind: "kill", Target: target,
		})
	}
}

// insert puts an event into a log before its last one.
func (s *stored) insert(update *a2apb.TaskStatusUpdateEvent) {
	update.TaskId, update.ContextId = s.task.GetId(), s.task.GetContextId()
	at := len(s.log) - 1
	e := proto.CloneOf(s.log[at])
	e.Kind = &eventv1.Event_StatusUpdate{StatusUpdate: update}
	s.log = slices.Insert(s.log, at, e)
	s.number()
}

// number gives each event the version that its place says.
func (s *stored) number() {
	for i, e := range s.log {
		e.Version = int64(i) + 1
	}
}

// at is the task without history at a version that has a status.
func (s *stored) at(version int) *a2apb.Task {
	t := proto.CloneOf(s.log[0].GetCreated())
	t.History = nil
	if version > 1 {
		t.Status = s.log[version-1].GetStatusUpdate().GetStatus()
	}
	return t
}

// final is the task without history.
func (s *stored) final() *a2apb.Task {
	t := proto.CloneOf(s.task)
	t.History = nil
	return t
}
