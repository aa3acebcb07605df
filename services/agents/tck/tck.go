// Package tck is the agent that the A2A Technology Compatibility Kit drives: the
// id of a message says what is to come of it, by its longest known prefix.
package tck

import (
	"context"
	_ "embed"
	"strings"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/agent"
)

// Name is the agent's name in its agents file.
const Name = "tck"

//go:embed agents.yaml
var agentsFile []byte

// AgentsFile is an agents file with the tck agent alone.
func AgentsFile() []byte { return agentsFile }

// New returns the agent.
func New() agent.Agent {
	return agent.Agent{
		Name:     Name,
		Handler:  agent.HandlerFunc(handle),
		Messages: agent.MessageHandlerFunc(answer),
		Router:   agent.RouterFunc(route),
	}
}

const messagePrefix = "tck-message-response"

type action func(ctx context.Context, t *agent.Task) error

// actions by prefix of the message id. Whatever doesn't settle the turn itself
// completes it.
var actions = map[string]action{
	"tck-complete-task": func(ctx context.Context, t *agent.Task) error {
		return t.Complete(ctx, agent.Text("Hello from TCK"))
	},
	"tck-input-required": func(ctx context.Context, t *agent.Task) error {
		return t.AskInput(ctx, agent.Text("Input required"))
	},
	"tck-reject-task": func(ctx context.Context, t *agent.Task) error {
		return t.Reject(ctx, agent.Text("Rejected"))
	},
	"tck-artifact-text":           emitText("Generated text content"),
	"tck-artifact-file":           emit(file),
	"tck-artifact-file-url":       emit(agent.FileURL("output.txt", "text/plain", "https://example.com/output.txt")),
	"tck-artifact-data":           emitData,
	"tck-stream-001":              emitText("Stream hello from TCK"),
	"tck-stream-003":              emitText("Stream task lifecycle"),
	"tck-stream-ordering-001":     emitText("Ordered output"),
	"tck-stream-artifact-text":    emitText("Streamed text content"),
	"tck-stream-artifact-file":    emit(file),
	"tck-stream-artifact-chunked": chunked,
	"test-resubscribe-message-id": wait,
}

var file = agent.File("output.txt", "text/plain", []byte("Generated file content\n"))

func handle(ctx context.Context, t *agent.Task) error {
	id := t.Message().GetMessage().GetMessageId()
	longest := ""
	for prefix := range actions {
		if strings.HasPrefix(id, prefix) && len(prefix) > len(longest) {
			longest = prefix
		}
	}
	if longest == "" {
		return nil
	}
	return actions[longest](ctx, t)
}

func emit(part *a2apb.Part) action {
	return func(ctx context.Context, t *agent.Task) error {
		return t.Emit(ctx, &a2apb.Artifact{Name: "output", Parts: []*a2apb.Part{part}})
	}
}

func emitText(text string) action { return emit(agent.Text(text)) }

func emitData(ctx context.Context, t *agent.Task) error {
	part, err := agent.Data(map[string]any{"key": "value", "count": 42})
	if err != nil {
		return err
	}
	return emit(part)(ctx, t)
}

func chunked(ctx context.Context, t *agent.Task) error {
	stream := t.Stream(&a2apb.Artifact{Name: "output"})
	if err := stream.Send(ctx, agent.Text("chunk-1 ")); err != nil {
		return err
	}
	return stream.SendLast(ctx, agent.Text("chunk-2"))
}

// wait leaves time to subscribe to a running task.
func wait(ctx context.Context, _ *agent.Task) error {
	timer := time.NewTimer(4 * time.Second)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func route(_ context.Context, r *agent.Request) (string, error) {
	if strings.HasPrefix(r.Message().GetMessageId(), messagePrefix) {
		return "answer", nil
	}
	return "task", nil
}

func answer(_ context.Context, r *agent.Request) error {
	return r.Reply(agent.Text("Direct message response"))
}
