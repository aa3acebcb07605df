package check

import (
	"strings"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/services/e2e/internal/chaos/journal"
)

// origins: each message of the log was sent by somebody, and has one task.
func (c *checker) origins(r *record) {
	r.accepted = map[string]int64{}
	for _, e := range r.log {
		said := []*a2apb.Message{e.GetUserMessage().GetMessage()}
		if e.GetCreated() != nil {
			said = e.GetCreated().GetHistory()
		}
		for _, m := range said {
			if m.GetRole() == a2apb.Role_ROLE_USER {
				c.origin(r, m, e.GetVersion())
			}
		}
	}
	for id := range r.accepted {
		if n := times(r.task, id); n != 1 {
			c.violationf(r, Lost, "message %s is %d times in the history", id, n)
		}
	}
}

func times(t *a2apb.Task, messageID string) int {
	n := 0
	for _, m := range t.GetHistory() {
		if m.GetMessageId() == messageID {
			n++
		}
	}
	return n
}

func (c *checker) origin(r *record, m *a2apb.Message, version int64) {
	id := m.GetMessageId()
	if sent := c.book.messages[id]; sent == nil || sent.TaskID != "" && sent.TaskID != r.id {
		c.violationf(r, Doubled, "nobody sent message %s to this task", id)
	}
	if _, again := r.accepted[id]; again {
		c.violationf(r, Doubled, "message %s is accepted again at version %d", id, version)
		return
	}
	r.accepted[id] = version
	c.mu.Lock()
	other, again := c.homes[id]
	c.homes[id] = r.id
	c.mu.Unlock()
	if again {
		c.violationf(r, Doubled, "message %s has task %s, too", id, other)
	}
}

// message: all answers name one outcome, and the store has it.
func (c *checker) message(m *journal.Message) {
	outcomes := map[string]bool{}
	var r *record
	home := c.homes[m.MessageID]
	answered := false
	for _, a := range m.Attempts {
		answered = answered || !a.Lost && !a.Retryable
		switch {
		case a.Reply != nil:
			outcomes["reply "+a.Reply.GetMessageId()] = true
		case a.Task != nil:
			outcomes["task "+a.Task.GetId()] = true
		case m.TaskID == "" && !a.Lost && !a.Retryable:
			c.violationf(c.sketch(m, home), Failed, "message %s (%s) was refused: %s", m.MessageID, m.Text, a.Error)
		}
	}
	r = c.sketch(m, home)
	if home != "" {
		outcomes["task "+home] = true
	}
	if len(outcomes) > 1 {
		c.violationf(r, Doubled, "message %s has outcomes %v", m.MessageID, outcomes)
	}
	for o := range outcomes {
		if id, isTask := strings.CutPrefix(o, "task "); isTask && home == "" && c.known[id] {
			c.violationf(r, Lost, "message %s was answered with task %s, which doesn't have it", m.MessageID, id)
		}
	}
	if !answered {
		c.violationf(r, Unanswered, "message %s (%s) got no answer", m.MessageID, m.Text)
	}
}

// sketch is a record for the story of a message, whose task may be unknown.
func (c *checker) sketch(m *journal.Message, home string) *record {
	r := &record{id: home, entries: entries{messages: []*journal.Message{m}}}
	for id := range named(m) {
		r.id = id
	}
	if r.id != "" {
		r.entries = c.book.of(r.id)
	}
	return r
}

// end: the task ends, and fails only when it must.
func (c *checker) end(r *record) {
	state := r.task.GetStatus().GetState()
	switch {
	case !task.Terminal(state):
		c.violationf(r, Open, "the task is still %s", state)
	case state == task.Failed:
		c.failed(r)
	case state == task.Canceled && len(r.cancels) == 0:
		c.violationf(r, Told, "nobody canceled the task")
	case state == task.Rejected:
		c.violationf(r, Failed, "no handler rejects")
	}
}

// share: of the tasks that were meant to complete, nearly all do.
func (c *checker) share() {
	const wanted = 0.99
	n := c.report.numbers
	if n.meant > 0 && float64(n.fulfilled) < wanted*float64(n.meant) {
		c.violationf(nil, Share, "%d of %d tasks that were meant to complete did", n.fulfilled, n.meant)
	}
}

// meant tells whether the task was to complete.
func (r *record) meant() bool {
	for _, m := range r.messages {
		if onPurpose(m.Text) {
			return false
		}
	}
	return len(r.cancels) == 0
}
