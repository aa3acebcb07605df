package main

import (
	"context"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
)

type subscribeCommand struct {
	target

	ID string `arg:"" help:"The task's id."`
}

// Run prints updates until the task is terminal.
func (s *subscribeCommand) Run(ctx context.Context, c *console) error {
	agent, err := s.connect(ctx, c)
	if err != nil {
		return err
	}
	defer agent.Close()
	f := &follower{console: c, target: &s.target, live: newTranscript(c)}
	task, _, err := f.follow(ctx, agent.Subscribe(ctx, &a2apb.SubscribeToTaskRequest{Id: s.ID}), nil)
	if err != nil {
		return err
	}
	return conclude(c, &s.target, task)
}
