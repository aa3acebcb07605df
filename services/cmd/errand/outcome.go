package main

import (
	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"github.com/errandhq/errand/pkg/task"
)

// conclude says how a task ended, and how to go on where it hasn't.
func conclude(c *console, t *target, whole *a2apb.Task) error {
	if t.json() {
		return outcome(whole)
	}
	c.notef("task %s: %s", whole.GetId(), stateName(whole))
	switch whole.GetStatus().GetState() {
	case task.InputRequired:
		c.notef("answer with: %s", t.again("send", "--task", whole.GetId(), `"…"`))
	case task.AuthRequired:
		c.notef("authorize it, then: %s", t.again("subscribe", whole.GetId()))
	default:
	}
	return outcome(whole)
}

// outcome is the exit code of commands that follow a task.
func outcome(whole *a2apb.Task) error {
	switch whole.GetStatus().GetState() {
	case task.Failed:
		return exitError(exitTaskFailed)
	case task.Rejected:
		return exitError(exitRejected)
	case task.Canceled:
		return exitError(exitCanceled)
	default:
		return nil
	}
}
