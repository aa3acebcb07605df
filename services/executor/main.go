package executor

import (
	"context"
	"fmt"
	"os"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/services/internal/process"
)

const name = "errand-executor"

type settings struct {
	process.Flags

	TaskStore string `name:"taskstore" help:"Addresses of the task stores, with commas between; they take turns." env:"ERRAND_TASKSTORE" default:"localhost:9091"`
	NATSURL   string `name:"nats-url" help:"URLs of the NATS servers." env:"ERRAND_NATS_URL" default:"nats://localhost:4222"`
}

// Main is the main function of a program that runs these agents: it reads flags
// and environment variables (--help shows them), runs until a signal ends it,
// and exits the process.
//
//	func main() { executor.Main(agent.Agent{Name: "orders", Handler: agent.HandlerFunc(handle)}) }
//
// Agents that the agents file doesn't have are not served.
func Main(agents ...agent.Agent) {
	var s settings
	process.Parse(name, "Runs agents for Errand.", &s)
	os.Exit(process.Program{
		Name: name, Flags: s.Flags,
		Build: func(ctx context.Context, p *process.Process) error { return build(ctx, p, s, agents) },
	}.Run())
}

func build(ctx context.Context, p *process.Process, s settings, agents []agent.Agent) error {
	nc, err := p.ConnectNATS(ctx, s.NATSURL)
	if err != nil {
		return err //nolint:wrapcheck // it says what was tried
	}
	store, err := p.ConnectTaskStore(s.TaskStore)
	if err != nil {
		return err //nolint:wrapcheck // it says what was tried
	}
	service, err := New(ctx, Config{
		Logger: p.Logger, Telemetry: p.Telemetry, Agents: p.Agents, Handlers: known(ctx, p, agents), TaskStore: store, NATS: nc,
	})
	if err != nil {
		return fmt.Errorf("build executor: %w", err)
	}
	p.Parts.Add("executor", service)
	return nil
}

// known are the agents that the agents file has.
func known(ctx context.Context, p *process.Process, agents []agent.Agent) []agent.Agent {
	var served []agent.Agent
	for _, a := range agents {
		if p.Agents.Agent(a.Name) == nil {
			p.Logger.WarnContext(ctx, "agent is not in the agents file and is not served", "agent", a.Name)
			continue
		}
		served = append(served, a)
	}
	return served
}
