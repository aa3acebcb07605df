package main

import (
	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"github.com/errandhq/errand/pkg/client"
	"github.com/errandhq/errand/pkg/task"
)

// transcript prints a task's artifacts as they grow, each part once, however
// often the whole task comes in between.
type transcript struct {
	console *console
	// Parts printed of each artifact.
	printed map[string]int
	// The artifact that was printed last.
	last string
}

func newTranscript(c *console) *transcript {
	return &transcript{console: c, printed: map[string]int{}}
}

func (t *transcript) update(u *client.Update) {
	if u.Task == nil {
		return
	}
	if change := u.Event.GetArtifactUpdate(); change != nil && !change.GetAppend() {
		t.replaced(change.GetArtifact())
	}
	t.artifacts(u.Task)
	if status := u.Event.GetStatusUpdate().GetStatus(); task.Settled(status.GetState()) {
		t.closing(u.Task)
	}
}

// replaced is for an artifact that begins anew, as it does when the agent has to
// try again.
func (t *transcript) replaced(artifact *a2apb.Artifact) {
	if id := artifact.GetArtifactId(); t.printed[id] > 0 {
		t.console.notef("the agent replaces %s", artifactName(artifact))
		t.printed[id] = 0
	}
}

// task prints a whole task.
func (t *transcript) task(whole *a2apb.Task) {
	t.artifacts(whole)
	t.closing(whole)
}

func (t *transcript) artifacts(whole *a2apb.Task) {
	for _, artifact := range whole.GetArtifacts() {
		id, parts := artifact.GetArtifactId(), artifact.GetParts()
		from := t.printed[id]
		if from > len(parts) {
			// It was replaced by a shorter one while we were away.
			from = 0
		}
		if from == len(parts) {
			continue
		}
		if t.last != id || from == 0 {
			t.console.endLine()
			t.last = id
		}
		t.console.parts(parts[from:])
		t.printed[id] = len(parts)
	}
}

// closing prints what the agent says at the end of its turn.
func (t *transcript) closing(whole *a2apb.Task) {
	t.console.endLine()
	if m := whole.GetStatus().GetMessage(); m != nil {
		t.console.parts(m.GetParts())
		t.console.endLine()
	}
}
