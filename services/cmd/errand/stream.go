package main

import "context"

type streamCommand struct {
	message
	target
}

// Run sends, and prints updates until the task settles.
func (s *streamCommand) Run(ctx context.Context, c *console) error {
	request, err := s.request(c)
	if err != nil {
		return err
	}
	agent, err := s.connect(ctx, c)
	if err != nil {
		return err
	}
	defer agent.Close()
	f := &follower{console: c, target: &s.target, live: newTranscript(c)}
	task, _, err := f.follow(ctx, agent.Stream(ctx, request), request)
	if err != nil || task == nil {
		return err
	}
	return conclude(c, &s.target, task)
}
