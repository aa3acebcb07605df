package store

import (
	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

// Why the store itself ends a task: words for dead letters and metrics.
const (
	reasonAttempts = "max_attempts"
	reasonRuntime  = "max_runtime"
	reasonInput    = "input_timeout"
)

// What a sender is told of it.
var giveUpTexts = map[string]string{
	reasonAttempts: "The agent did not finish this task.",
	reasonRuntime:  "The agent took too long for this task.",
	reasonInput:    "The answer that this task waited for did not come in time.",
}

// exhausted tells whether the claim that just ended was the turn's last one.
func (s *Store) exhausted(t *engine.Task) bool {
	return int(t.Attempt) >= s.Agents.Settings(t.Agent).MaxAttempts
}

// giveUp fails a task that its executor doesn't end.
func (s *Store) giveUp(d *draft, reason string) {
	m := &a2apb.Message{
		MessageId: s.NewID(), Role: a2apb.Role_ROLE_AGENT,
		Parts: []*a2apb.Part{{Content: &a2apb.Part_Text{Text: giveUpTexts[reason]}}},
	}
	encoded, err := ofTask(m, d.row.ID, d.row.ContextID)
	if err != nil { // not for text of our own; the task must end even then
		encoded = nil
	}
	d.fail(encoded, reason)
}
