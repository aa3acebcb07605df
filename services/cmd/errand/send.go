package main

import (
	"context"
	"fmt"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"github.com/errandhq/errand/pkg/client"
)

type sendCommand struct {
	message
	target

	ReturnImmediately bool `help:"Do not wait for the task."`
}

// Run sends, and prints the answer as a whole.
func (s *sendCommand) Run(ctx context.Context, c *console) error {
	request, err := s.request(c)
	if err != nil {
		return err
	}
	agent, err := s.connect(ctx, c)
	if err != nil {
		return err
	}
	defer agent.Close()
	if s.ReturnImmediately {
		return s.accept(ctx, c, agent, request)
	}
	task, answer, err := (&follower{console: c, target: &s.target}).follow(ctx, agent.Stream(ctx, request), request)
	if err != nil {
		return err
	}
	if answer != nil {
		return s.answered(c, answer)
	}
	// The agent's own view of the task is the whole one.
	task, err = agent.Get(ctx, &a2apb.GetTaskRequest{Id: task.GetId(), HistoryLength: s.History})
	if err != nil {
		return fmt.Errorf("read the task's result: %w", err)
	}
	return s.settled(c, task)
}

// accept prints what was made of the message so far.
func (s *sendCommand) accept(ctx context.Context, c *console, agent *client.Client, request *a2apb.SendMessageRequest) error {
	request.Configuration.ReturnImmediately = true
	response, err := agent.Send(ctx, request)
	if err != nil {
		return err
	}
	if response.GetMessage() != nil {
		return s.answered(c, response.GetMessage())
	}
	task := response.GetTask()
	if s.json() {
		return c.json(response)
	}
	c.print(task.GetId() + "\n")
	c.notef("%s; follow it with: %s", stateName(task), s.again("subscribe", task.GetId()))
	return nil
}

func (s *sendCommand) answered(c *console, answer *a2apb.Message) error {
	if s.json() {
		return c.json(&a2apb.SendMessageResponse{Payload: &a2apb.SendMessageResponse_Message{Message: answer}})
	}
	c.parts(answer.GetParts())
	return nil
}

func (s *sendCommand) settled(c *console, task *a2apb.Task) error {
	if s.json() {
		if err := c.json(&a2apb.SendMessageResponse{Payload: &a2apb.SendMessageResponse_Task{Task: task}}); err != nil {
			return err
		}
		return outcome(task)
	}
	newTranscript(c).task(task)
	return conclude(c, &s.target, task)
}
