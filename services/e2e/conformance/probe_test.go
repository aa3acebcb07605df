package conformance_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/agent"
)

// scripts holds the code that the probe agent runs, by the text of the first
// message of a task. So a test can be both the sender and the agent.
var scripts sync.Map

// quick begins the texts that the probe agent answers without a task.
const quick = "quick "

// probe is an agent that runs scripts.
func probe(name string) agent.Agent {
	return agent.Agent{
		Name: name,
		Handler: agent.HandlerFunc(func(ctx context.Context, t *agent.Task) error {
			run, ok := scripts.Load(nameOf(t.Messages()[0].GetMessage()))
			if !ok {
				return fmt.Errorf("no script for %q", nameOf(t.Messages()[0].GetMessage()))
			}
			return run.(agent.HandlerFunc)(ctx, t)
		}),
		Messages: agent.MessageHandlerFunc(func(ctx context.Context, r *agent.Request) error {
			run, ok := scripts.Load(nameOf(r.Message()))
			if !ok {
				return fmt.Errorf("no script for %q", nameOf(r.Message()))
			}
			return run.(agent.MessageHandlerFunc)(ctx, r)
		}),
		Router: agent.RouterFunc(func(_ context.Context, r *agent.Request) (string, error) {
			if strings.HasPrefix(nameOf(r.Message()), quick) {
				return "answer", nil
			}
			return "script", nil
		}),
	}
}

// nameOf is the text of the first part, which names the script.
func nameOf(m *a2apb.Message) string { return m.GetParts()[0].GetText() }

// script makes the probe agent run handler for tasks that begin with the text.
func script(t *testing.T, handler agent.HandlerFunc) (text string) {
	t.Helper()
	return register(t, "work "+uuid.NewString(), handler)
}

// quickScript makes the probe agent answer messages of the text without a task.
func quickScript(t *testing.T, handler agent.MessageHandlerFunc) (text string) {
	t.Helper()
	return register(t, quick+uuid.NewString(), handler)
}

func register(t *testing.T, text string, handler any) string {
	t.Helper()
	scripts.Store(text, handler)
	t.Cleanup(func() { scripts.Delete(text) })
	return text
}

// settleAs is a script that ends in a state.
func settleAs(end a2apb.TaskState) agent.HandlerFunc {
	return func(ctx context.Context, t *agent.Task) error {
		switch end {
		case rejected:
			return t.Reject(ctx)
		case failed:
			return t.Fail(ctx)
		default:
			return t.Complete(ctx)
		}
	}
}

// hold is a script that waits for the test in the middle of its work.
type hold struct {
	text string
	// running gets the task each time a run begins.
	running chan *agent.Task
	release func()
}

// newHold makes a script that emits artifact "before", waits for release, emits
// artifact "after" and completes. It gives up when its context ends.
func newHold(t *testing.T) *hold {
	t.Helper()
	gate := make(chan struct{})
	h := &hold{running: make(chan *agent.Task, 16), release: sync.OnceFunc(func() { close(gate) })}
	h.text = script(t, func(ctx context.Context, task *agent.Task) error {
		if err := task.Emit(ctx, artifact("before", "b")); err != nil {
			return err
		}
		if err := task.Flush(ctx); err != nil {
			return err
		}
		h.running <- task
		select {
		case <-gate:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		return task.Emit(ctx, artifact("after", "a"))
	})
	t.Cleanup(h.release)
	return h
}

// awaitRun waits until the agent is in the middle of its work.
func (h *hold) awaitRun(t *testing.T) {
	t.Helper()
	select {
	case <-h.running:
	case <-within(t).Done():
		require.Fail(t, "the agent does not run")
	}
}

func artifact(id string, texts ...string) *a2apb.Artifact {
	a := &a2apb.Artifact{ArtifactId: id}
	for _, text := range texts {
		a.Parts = append(a.Parts, agent.Text(text))
	}
	return a
}
