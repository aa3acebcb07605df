package main

import (
	"context"
	"fmt"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
)

type getCommand struct {
	target

	ID      string `arg:"" help:"The task's id."`
	History *int32 `help:"Number of messages to show of the history; all if not given." placeholder:"N"`
}

// Run prints a task as it is.
func (g *getCommand) Run(ctx context.Context, c *console) error {
	agent, err := g.connect(ctx, c)
	if err != nil {
		return err
	}
	defer agent.Close()
	task, err := agent.Get(ctx, &a2apb.GetTaskRequest{Id: g.ID, HistoryLength: g.History})
	if err != nil {
		return err
	}
	if g.json() {
		return c.json(task)
	}
	c.describe(task)
	return nil
}

// describe prints a task for people.
func (c *console) describe(task *a2apb.Task) {
	field := func(name, value string) {
		if value != "" {
			c.print(fmt.Sprintf("%-9s %s\n", name+":", value))
		}
	}
	field("task", task.GetId())
	field("context", task.GetContextId())
	field("state", stateName(task))
	field("since", timeOf(task))
	field("message", textOf(task.GetStatus().GetMessage()))
	for _, m := range task.GetHistory() {
		who := "user"
		if m.GetRole() == a2apb.Role_ROLE_AGENT {
			who = "agent"
		}
		field(who, textOf(m))
	}
	for _, artifact := range task.GetArtifacts() {
		field("artifact", artifactName(artifact))
		c.parts(artifact.GetParts())
		c.endLine()
	}
}

func artifactName(a *a2apb.Artifact) string {
	if a.GetName() != "" {
		return a.GetName()
	}
	return a.GetArtifactId()
}

func timeOf(task *a2apb.Task) string {
	if task.GetStatus().GetTimestamp() == nil {
		return ""
	}
	return task.GetStatus().GetTimestamp().AsTime().Format(time.RFC3339)
}
