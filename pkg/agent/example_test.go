package agent_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/pkg/agent/agenttest"
)

var quiet = slog.New(slog.DiscardHandler)

// An agent that answers with one artifact. Returning nil completes the task.
func Example() {
	shout := agent.Agent{
		Name: "shout",
		Handler: agent.HandlerFunc(func(ctx context.Context, t *agent.Task) error {
			text := strings.ToUpper(agent.TextOf(t.Message().GetMessage()))
			return t.Emit(ctx, &a2apb.Artifact{Name: "answer", Parts: []*a2apb.Part{agent.Text(text)}})
		}),
	}

	done, err := agenttest.New(shout, quiet).Send(agenttest.Text("hello"))
	fmt.Println(done.GetStatus().GetState(), err)
	fmt.Println(done.GetArtifacts()[0].GetParts()[0].GetText())
	// Output:
	// TASK_STATE_COMPLETED <nil>
	// HELLO
}

// Asking ends the run; the answer starts another one, which finds the question
// and everything said so far in the task.
func ExampleTask_AskInput() {
	order := agent.Agent{
		Name: "order",
		Handler: agent.HandlerFunc(func(ctx context.Context, t *agent.Task) error {
			if len(t.Messages()) == 1 {
				return t.AskInput(ctx, agent.Text("Which colour?"))
			}
			colour := agent.TextOf(t.Message().GetMessage())
			return t.Complete(ctx, agent.Text("Three "+colour+" mugs are on their way."))
		}),
	}
	cluster := agenttest.New(order, quiet)

	asked, _ := cluster.Send(agenttest.Text("order 3 mugs"))
	fmt.Println(asked.GetStatus().GetState(), agent.TextOf(asked.GetStatus().GetMessage()))

	reply := agenttest.Text("blue")
	reply.TaskId = asked.GetId()
	done, _ := cluster.Send(reply)
	fmt.Println(done.GetStatus().GetState(), agent.TextOf(done.GetStatus().GetMessage()))
	// Output:
	// TASK_STATE_INPUT_REQUIRED Which colour?
	// TASK_STATE_COMPLETED Three blue mugs are on their way.
}

// Chunks reach a streaming sender one by one; who reads the task later sees one
// artifact.
func ExampleTask_Stream() {
	count := agent.Agent{
		Name: "count",
		Handler: agent.HandlerFunc(func(ctx context.Context, t *agent.Task) error {
			numbers := t.Stream(&a2apb.Artifact{Name: "numbers"})
			for i := range 3 {
				if err := numbers.Send(ctx, agent.Text(fmt.Sprint(i))); err != nil {
					return err
				}
			}
			return numbers.SendLast(ctx, agent.Text("done"))
		}),
	}

	done, _ := agenttest.New(count, quiet).Send(agenttest.Text("go"))
	for _, a := range done.GetArtifacts() {
		fmt.Println(a.GetName(), len(a.GetParts()))
	}
	// Output: numbers 4
}

// The state of a context outlives its tasks.
func ExampleUpdateContext() {
	type memory struct {
		Greeted int `json:"greeted"`
	}
	greeter := agent.Agent{
		Name: "greeter",
		Handler: agent.HandlerFunc(func(ctx context.Context, t *agent.Task) error {
			times := 0
			err := agent.UpdateContext(ctx, t.Context(), func(m *memory) error {
				m.Greeted++
				times = m.Greeted
				return nil
			})
			if err != nil {
				return err
			}
			return t.Complete(ctx, agent.Text(fmt.Sprintf("Hello for the %d. time.", times)))
		}),
	}
	cluster := agenttest.New(greeter, quiet)

	for range 2 {
		m := agenttest.Text("hi")
		m.ContextId = "monday"
		done, _ := cluster.Send(m)
		fmt.Println(agent.TextOf(done.GetStatus().GetMessage()))
	}
	// Output:
	// Hello for the 1. time.
	// Hello for the 2. time.
}
