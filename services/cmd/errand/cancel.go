package main

import (
	"context"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
)

type cancelCommand struct {
	target

	ID string `arg:"" help:"The task's id."`
}

// Run cancels a task.
func (x *cancelCommand) Run(ctx context.Context, c *console) error {
	agent, err := x.connect(ctx, c)
	if err != nil {
		return err
	}
	defer agent.Close()
	task, err := agent.Cancel(ctx, &a2apb.CancelTaskRequest{Id: x.ID})
	if err != nil {
		return err
	}
	if x.json() {
		return c.json(task)
	}
	c.notef("task %s: %s", task.GetId(), stateName(task))
	return nil
}
