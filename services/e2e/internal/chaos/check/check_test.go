package check_test

import (
	"context"
	"slices"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/services/e2e/internal/chaos/check"
	"github.com/errandhq/errand/services/e2e/internal/chaos/journal"
)

// broken are promises that are broken on purpose, by the kind as which the
// checker must find them; nothing where it must be content.
var broken = []struct {
	name  string
	found check.Kind
	do    func(d *doctor)
}{
	{"the task of an accepted message is gone", check.Lost, func(d *doctor) {
		gone := d.quiet()[0]
		d.tasks = slices.DeleteFunc(d.tasks, func(s *stored) bool { return s == gone })
	}},
	{"a message is not in the history", check.Lost, func(d *doctor) { d.quiet()[0].task.History = nil }},
	{"a message is twice in the history", check.Lost, func(d *doctor) {
		s := d.quiet()[0]
		s.task.History = append(s.task.History, s.task.GetHistory()[0])
	}},
	{"a message has two tasks", check.Doubled, func(d *doctor) { d.double(d.quiet()[0], "another") }},
	{"a message has two replies", check.Doubled, func(d *doctor) {
		for _, m := range d.messages {
			if m.Attempts[0].Reply != nil {
				m.Attempts = append(m.Attempts, journal.Attempt{Reply: &a2apb.Message{MessageId: "another"}})
				return
			}
		}
	}},
	{"a message has a reply and a task", check.Doubled, func(d *doctor) {
		m := d.messageOf(d.quiet()[0])
		m.Attempts = append(m.Attempts, journal.Attempt{Reply: &a2apb.Message{MessageId: "another"}})
	}},
	{"a task comes from no message", check.Doubled, func(d *doctor) {
		m := d.messageOf(d.quiet()[0])
		d.messages = slices.DeleteFunc(d.messages, func(other *journal.Message) bool { return other == m })
	}},
	{"a task does not end", check.Open, func(d *doctor) {
		s := d.quiet()[0]
		d.unfinish(s)
		s.log = s.log[:len(s.log)-1]
		s.task.Status = s.log[1].GetStatusUpdate().GetStatus()
	}},
	{"a version has no event", check.Versions, func(d *doctor) {
		s := d.quiet()[0]
		s.log = slices.Delete(s.log, 3, 4)
	}},
	{"a version has two events", check.Versions, func(d *doctor) {
		s := d.quiet()[0]
		s.log[3].Version = s.log[2].GetVersion()
	}},
	{"the log makes another task", check.Versions, func(d *doctor) {
		d.quiet()[0].task.Status.Message.Parts = []*a2apb.Part{agent.Text("something else")}
	}},
	{"an event comes after the end", check.Final, func(d *doctor) {
		s := d.quiet()[0]
		s.log = append(s.log, proto.CloneOf(s.log[len(s.log)-1]))
		s.number()
	}},
	{"a move is not in the table", check.Final, func(d *doctor) {
		d.quiet()[0].log[1].GetStatusUpdate().Status.State = task.InputRequired
	}},
	{"an answer shows another end", check.Told, func(d *doctor) {
		s := d.quiet()[0]
		wrong := s.final()
		wrong.Status.State = task.Failed
		d.messageOf(s).Attempts[0].Task = wrong
	}},
	{"a cancel is confirmed and the task completes", check.Told, func(d *doctor) {
		s := d.quiet()[0]
		wrong := s.final()
		wrong.Status.State = task.Canceled
		d.cancels = append(d.cancels, &journal.Cancel{TaskID: s.task.GetId(), Attempt: journal.Attempt{Task: wrong}})
	}},
	{"a cancel is refused and the task is canceled", check.Told, func(d *doctor) {
		s := d.ended(task.Canceled)
		d.cancels = append(d.cancels, &journal.Cancel{TaskID: s.task.GetId(), Attempt: journal.Attempt{Error: "TASK_NOT_CANCELABLE"}})
	}},
	{"nobody canceled a task that is canceled", check.Told, func(d *doctor) {
		id := d.ended(task.Canceled).task.GetId()
		d.cancels = slices.DeleteFunc(d.cancels, func(c *journal.Cancel) bool { return c.TaskID == id })
	}},
	{"a blocking send does not wait", check.Told, func(d *doctor) { d.messageOf(d.quiet()[0]).Attempts[0].Blocking = true }},
	{"a read shows what never was", check.Told, func(d *doctor) {
		wrong := d.quiet()[0].final()
		wrong.Artifacts[0].Parts[0] = agent.Text("something else")
		d.read(wrong, time.Hour)
	}},
	{"a read shows less than the one before", check.Told, func(d *doctor) {
		s := d.quiet()[0]
		d.read(s.final(), time.Hour)
		d.read(s.at(1), 2*time.Hour)
	}},
	{"a handler is told that it completed and the task is canceled", check.Told, func(d *doctor) {
		id := d.ended(task.Canceled).task.GetId()
		d.runs = append(d.runs, journal.Run{TaskID: id, ID: "another", Result: "completed"})
	}},
	{"an earlier run writes after a later one", check.Fenced, func(d *doctor) {
		s := d.quiet()[0]
		d.runs = append(d.runs, journal.Run{TaskID: s.task.GetId(), ID: "earlier"})
		late := &a2apb.Message{Parts: []*a2apb.Part{agent.Text(journal.Sign("earlier", "going on"))}}
		s.insert(&a2apb.TaskStatusUpdateEvent{Status: &a2apb.TaskStatus{State: task.Working, Message: late}})
	}},
	{"two runs write in turns", check.Fenced, func(d *doctor) {
		s := d.quiet()[0]
		d.runs = append(d.runs, journal.Run{TaskID: s.task.GetId(), ID: "other", Begun: time.Now()})
		late := &a2apb.Message{Parts: []*a2apb.Part{agent.Text(journal.Sign("other", "going on"))}}
		s.insert(&a2apb.TaskStatusUpdateEvent{Status: &a2apb.TaskStatus{State: task.Working, Message: late}})
	}},
	{"an artifact has a chunk of another run", check.Fenced, func(d *doctor) {
		s := d.quiet()[0]
		other := agent.Text(journal.Sign("another", journal.Chunk(2, 9)))
		s.log[3].GetArtifactUpdate().Artifact.Parts[0] = other
		s.task.Artifacts[0].Parts[1] = other
	}},
	{"an artifact lacks a chunk", check.Fenced, func(d *doctor) {
		s := d.quiet()[0]
		s.log = slices.Delete(s.log, len(s.log)-2, len(s.log)-1)
		s.task.Artifacts[0].Parts = s.task.Artifacts[0].Parts[:len(s.task.Artifacts[0].Parts)-1]
		s.number()
	}},
	{"a task fails without need", check.Failed, func(d *doctor) { d.fail(d.quiet()[0]) }},
	{"a task fails that was interrupted too few times", check.Failed, func(d *doctor) {
		s := d.quiet()[0]
		d.fail(s)
		d.interrupt("taskstore-1", s, d.config.MaxAttempts-1)
	}},
	{"a task fails that was interrupted often enough", "", func(d *doctor) {
		s := d.quiet()[0]
		d.fail(s)
		d.interrupt("executor-0", s, d.config.MaxAttempts)
	}},
	{"a turn lies without a run while others are begun", check.Stalled, func(d *doctor) { d.delay(d.quiet()[0]) }},
	{"a turn lies without a run that was lost", check.Stalled, func(d *doctor) {
		s := d.quiet()[0]
		lost := journal.Run{TaskID: s.task.GetId(), ID: "lost", Ended: s.log[0].GetTime().AsTime(), Result: "draining"}
		for i, run := range d.runs {
			if run.TaskID == lost.TaskID {
				lost.Turn, lost.Begun = run.Turn, run.Begun
				d.runs = slices.Insert(d.runs, i, lost)
				break
			}
		}
		d.delay(s)
		d.runs[slices.IndexFunc(d.runs, func(run journal.Run) bool { return run.ID == "lost" })].Begun = lost.Begun
	}},
	{"a turn lies without a run while Postgres is away", "", func(d *doctor) {
		s := d.quiet()[0]
		d.delay(s)
		begun := s.log[0].GetTime().AsTime()
		away := journal.Interruption{Begun: begun, Ended: begun.Add(2 * late), Kind: "pause", Target: "postgres"}
		d.config.Interruptions = append(d.config.Interruptions, away)
	}},
	{"all turns lie without a run", "", func(d *doctor) {
		for _, s := range d.tasks {
			d.delay(s)
		}
	}},
	{"a message is refused", check.Failed, func(d *doctor) {
		d.messages = append(d.messages, &journal.Message{MessageID: "refused", Attempts: []journal.Attempt{{Error: "INTERNAL_ERROR"}}})
	}},
	{"a task is not found", check.Failed, func(d *doctor) {
		d.reads = append(d.reads, &journal.Read{TaskID: d.quiet()[0].task.GetId(), Error: "TASK_NOT_FOUND"})
	}},
	{"a subscriber is refused", check.Failed, func(d *doctor) {
		s := d.quiet()[0]
		refused := journal.Connection{Binding: "rest", Error: "INTERNAL_ERROR"}
		d.streams = append(d.streams, &journal.Stream{TaskID: s.task.GetId(), Connections: []journal.Connection{refused}})
	}},
	{"a subscriber is refused as if the task were over", check.Failed, func(d *doctor) {
		s := d.quiet()[0]
		refused := journal.Connection{Binding: "rest", Error: "UNSUPPORTED_OPERATION", Closed: s.log[0].GetTime().AsTime()}
		d.streams = append(d.streams, &journal.Stream{TaskID: s.task.GetId(), Connections: []journal.Connection{refused}})
	}},
	{"a resumed stream begins with a Task that is marked", "", func(d *doctor) {
		c := d.connection("rest", true)
		c.Events = []journal.Seen{resync(d.snapshot(c))}
	}},
	{"a resumed stream begins with a Task that is not marked", check.Stream, func(d *doctor) {
		c := d.connection("rest", true)
		c.Events = []journal.Seen{d.snapshot(c)}
	}},
	{"a stream says nothing while the gateways are paused", "", func(d *doctor) {
		c := d.connection("rest", false)
		c.Events, c.Ended, c.Closed = c.Events[:1], false, c.Closed.Add(late)
		paused := journal.Interruption{Begun: c.Opened, Ended: c.Closed, Kind: "pause", Target: "gateway-1"}
		d.config.Interruptions = append(d.config.Interruptions, paused)
	}},
	{"a message is never answered", check.Unanswered, func(d *doctor) {
		d.messages = append(d.messages, &journal.Message{MessageID: "lost", Attempts: []journal.Attempt{{Lost: true}, {Error: "UNAVAILABLE", Retryable: true}}})
	}},
	{"too few tasks complete", check.Share, func(d *doctor) {
		for _, s := range d.quiet() {
			d.fail(s)
			d.interrupt("postgres", s, d.config.MaxAttempts)
		}
	}},
	{"events are not published", check.Left, func(d *doctor) {
		d.config.Backlog = func(context.Context) (int64, error) { return 3, nil }
	}},
	{"a process ended by itself", check.Left, func(d *doctor) { d.config.Exits = []string{"gateway-0"} }},
}

// double has a task a second time under another id.
func (d *doctor) double(s *stored, id string) {
	other := &recording{tasks: []*stored{s}}
	twin := other.clone().tasks[0]
	twin.task.Id = id
	for _, e := range twin.log {
		e.TaskId = id
		switch {
		case e.GetCreated() != nil:
			e.GetCreated().Id = id
		case e.GetStatusUpdate() != nil:
			e.GetStatusUpdate().TaskId = id
		default:
			e.GetArtifactUpdate().TaskId = id
		}
	}
	d.tasks = append(d.tasks, twin)
	for _, run := range d.runs {
		if run.TaskID == s.task.GetId() {
			run.TaskID = id
			d.runs = append(d.runs, run)
		}
	}
}

// read has GetTask show a task, so long from now.
func (d *doctor) read(t *a2apb.Task, later time.Duration) {
	at := time.Now().Add(later)
	d.reads = append(d.reads, &journal.Read{TaskID: t.GetId(), Begun: at, At: at.Add(time.Millisecond), Task: t})
}

// enough messages have one of each kind among them that a case needs.
const enough = 400

// TestTheCheckerFindsBrokenPromisesAndNoOthers: a healthy run has no violations,
// and what is broken in its recording is found as what it is.
func TestTheCheckerFindsBrokenPromisesAndNoOthers(t *testing.T) {
	t.Parallel()
	j, written, store := record(t, enough)
	live := check.Check(t.Context(), config(j, written, store))
	require.Empty(t, live.Found(), report(t, live))
	healthy := remember(t, j, written, store)
	examine(t, healthy, "nothing was changed", "", func(*doctor) {})
	for _, b := range broken {
		examine(t, healthy, b.name, b.found, b.do)
	}
	for _, b := range brokenStreams {
		for _, binding := range []string{"jsonrpc", "rest", "grpc"} {
			examine(t, healthy, b.name+" over "+binding, b.found, func(d *doctor) { b.do(d.connection(binding, false)) })
		}
	}
	for _, b := range marks {
		for _, binding := range []string{"jsonrpc", "rest"} {
			examine(t, healthy, b.name+" over "+binding, b.found, func(d *doctor) { b.do(d.connection(binding, false)) })
		}
	}
	for _, b := range brokenResumed {
		examine(t, healthy, b.name, b.found, func(d *doctor) { b.do(d.connection("rest", true)) })
	}
}

func examine(t *testing.T, healthy *recording, name string, found check.Kind, do func(*doctor)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		d := &doctor{T: t, recording: healthy.clone()}
		d.config = config(nil, nil, d.recording)
		d.config.Settle = 0
		do(d)
		d.config.Journal, d.config.Runs = d.journal(), d.runs
		got := check.Check(t.Context(), d.config)
		want := []check.Kind{found}
		if found == "" {
			want = nil
		}
		require.Equal(t, want, got.Found(), report(t, got))
	})
}
