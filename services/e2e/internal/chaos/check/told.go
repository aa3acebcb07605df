package check

import (
	"slices"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/services/e2e/internal/chaos/journal"
)

// view is the task as somebody was shown it between two times.
type view struct {
	begun, ended time.Time
	what         string
	task         *a2apb.Task
	// The version that it must show at least.
	least int64
}

// told: everything that senders were shown was so at some time, and not before
// what they had been shown earlier.
func (c *checker) told(r *record) {
	var views []view
	for _, m := range r.messages {
		for _, a := range m.Attempts {
			c.attempt(r, m, a)
			views = append(views, view{a.Begun, a.Ended, "answer to " + m.MessageID, a.Task, r.accepted[m.MessageID]})
		}
	}
	for _, a := range r.cancels {
		c.cancel(r, a)
		views = append(views, view{a.Begun, a.Ended, "answer to a cancel", a.Task, 0})
	}
	for _, read := range r.reads {
		if read.Error != "" {
			c.violationf(r, Failed, "GetTask was refused: %s", read.Error)
		}
		views = append(views, view{read.Begun, read.At, "GetTask", read.Task, 0})
	}
	for _, s := range r.streams {
		for _, connection := range s.Connections {
			for i, e := range connection.Events {
				if i == 0 && connection.Resumed == 0 && e.Event.GetTask() != nil {
					views = append(views, view{connection.Opened, e.At, "first event of a stream", e.Event.GetTask(), e.Version})
				}
			}
		}
	}
	c.views(r, slices.DeleteFunc(views, func(v view) bool { return v.task == nil }))
}

// views: each was so at some version, and the versions don't go backwards.
func (c *checker) views(r *record, views []view) {
	type known struct {
		at      time.Time
		version int64
		what    string
	}
	var facts []known
	slices.SortFunc(views, func(a, b view) int { return a.begun.Compare(b.begun) })
	for _, v := range views {
		lowest, highest := r.match(v.task)
		if lowest == 0 {
			c.violationf(r, Told, "%s at %s shows what never was: %s", v.what, clock(v.ended), shortTask(v.task))
			continue
		}
		if highest < v.least {
			c.violationf(r, Told, "%s at %s shows version %d, not %d", v.what, clock(v.ended), highest, v.least)
		}
		for _, before := range facts {
			if before.at.Before(v.begun) && highest < before.version {
				c.violationf(r, Told, "%s at %s shows version %d, after %s showed %d", v.what, clock(v.ended), highest, before.what, before.version)
				break
			}
		}
		facts = append(facts, known{v.ended, lowest, v.what})
	}
}

// attempt: refusals have a reason, and who waits is told an end.
func (c *checker) attempt(r *record, m *journal.Message, a journal.Attempt) {
	if a.Lost || a.Retryable {
		return
	}
	if a.Task == nil && a.Reply == nil && m.TaskID != "" && (a.Error != "UNSUPPORTED_OPERATION" || !r.ended(a.Ended)) {
		c.violationf(r, Failed, "answer %q was refused: %s", m.Text, a.Error)
	}
	early := a.Ended.Sub(a.Begun) < c.Wait-time.Second
	if a.Task != nil && a.Blocking && early && !task.Settled(a.Task.GetStatus().GetState()) &&
		len(c.during(a.Begun, a.Ended.Add(time.Second))) == 0 {
		c.violationf(r, Told, "a blocking send of %q was answered with %s", m.Text, shortTask(a.Task))
	}
}

// cancel: a cancel is answered with CANCELED, or by the end that was before.
func (c *checker) cancel(r *record, a *journal.Cancel) {
	final := r.task.GetStatus().GetState()
	switch {
	case a.Lost || a.Retryable:
	case a.Task != nil && a.Task.GetStatus().GetState() != task.Canceled:
		c.violationf(r, Told, "a cancel was answered with %s", shortTask(a.Task))
	case a.Task != nil && final != task.Canceled:
		c.violationf(r, Told, "a cancel was confirmed, but the task is %s", final)
	case a.Error == "TASK_NOT_CANCELABLE" && final == task.Canceled:
		c.violationf(r, Told, "a cancel was refused, but the task is %s", final)
	case a.Task == nil && (a.Error != "TASK_NOT_CANCELABLE" || !r.ended(a.Ended)):
		c.violationf(r, Failed, "a cancel was refused: %s", a.Error)
	}
}
