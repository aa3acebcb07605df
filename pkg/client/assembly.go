package client

import (
	"errors"
	"fmt"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/pkg/task"
)

// assembly puts a task together from the events of a stream (A2A §4.2).
type assembly struct {
	// The task's id, empty until it is known.
	id string
	// Nil before the first event, and for a direct Message.
	task *a2apb.Task
}

// step is what one event did.
type step struct {
	// The state after it; unspecified if the event doesn't tell.
	state task.State
	// The event was a whole task.
	snapshot bool
	// The event was a direct Message.
	direct bool
	// Nothing is new: the whole task is what was assembled already.
	repeat bool
}

// apply takes an event in. One that doesn't fit changes nothing.
func (a *assembly) apply(response *a2apb.StreamResponse) (step, error) {
	switch payload := response.GetPayload().(type) {
	case *a2apb.StreamResponse_Task:
		return a.replace(payload.Task)
	case *a2apb.StreamResponse_StatusUpdate:
		update := payload.StatusUpdate
		a.expect(update.GetTaskId(), update.GetContextId())
		return step{state: update.GetStatus().GetState()}, task.ApplyStatus(a.task, update)
	case *a2apb.StreamResponse_ArtifactUpdate:
		update := payload.ArtifactUpdate
		a.expect(update.GetTaskId(), update.GetContextId())
		return step{}, task.ApplyArtifact(a.task, update)
	case *a2apb.StreamResponse_Message:
		if a.task != nil {
			return step{}, errors.New("a message amid a task")
		}
		return step{direct: true}, nil
	}
	return step{}, errors.New("an event of no kind")
}

func (a *assembly) replace(t *a2apb.Task) (step, error) {
	switch {
	case t.GetId() == "":
		return step{}, errors.New("a task without an id")
	case a.id != "" && a.id != t.GetId():
		return step{}, fmt.Errorf("%w: task %q instead of %q", task.ErrOtherTask, t.GetId(), a.id)
	}
	did := step{state: t.GetStatus().GetState(), snapshot: true, repeat: proto.Equal(a.task, t)}
	a.id, a.task = t.GetId(), proto.CloneOf(t)
	return did, nil
}

// expect begins the task where an agent's stream opens without one.
func (a *assembly) expect(taskID, contextID string) {
	if a.id == "" {
		a.id = taskID
	}
	if a.task == nil {
		a.task = &a2apb.Task{Id: a.id, ContextId: contextID}
	}
}
