// Command errand-notifier brings live events of tasks to the gateways.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/errandhq/errand/pkg/rpc"
	"github.com/errandhq/errand/services/internal/link"
	"github.com/errandhq/errand/services/internal/process"
	"github.com/errandhq/errand/services/notifier"
)

const name = "errand-notifier"

type settings struct {
	process.Flags

	GRPC      string `name:"grpc" help:"Address for gateways." env:"ERRAND_GRPC" default:":9092"`
	TaskStore string `name:"taskstore" help:"Addresses of the task stores, with commas between; they take turns." env:"ERRAND_TASKSTORE" default:"localhost:9091"`
	NATSURL   string `name:"nats-url" help:"URLs of the NATS servers." env:"ERRAND_NATS_URL" default:"nats://localhost:4222"`
}

func main() {
	var s settings
	process.Parse(name, "Brings live events of tasks to the gateways.", &s)
	os.Exit(process.Program{
		Name: name, Flags: s.Flags,
		Build: func(ctx context.Context, p *process.Process) error { return build(ctx, p, s) },
	}.Run())
}

func build(ctx context.Context, p *process.Process, s settings) error {
	nc, err := p.ConnectNATS(ctx, s.NATSURL)
	if err != nil {
		return err //nolint:wrapcheck // it says what was tried
	}
	store, err := p.ConnectTaskStore(s.TaskStore)
	if err != nil {
		return err //nolint:wrapcheck // it says what was tried
	}
	service, err := notifier.New(ctx, notifier.Config{Logger: p.Logger, Telemetry: p.Telemetry, TaskStore: store, NATS: nc})
	if err != nil {
		return fmt.Errorf("build notifier: %w", err)
	}
	p.Parts.Add("notifier", service)
	server, err := link.NewServer(s.GRPC, nil, rpc.ServerConfig{Logger: p.Logger, Telemetry: p.Telemetry}, p.Agents.Limits)
	if err != nil {
		return err //nolint:wrapcheck // it says what was tried
	}
	service.Register(server.Registrar())
	p.Parts.Add("server", server)
	p.Parts.AddCloser("watches", service.Drain)
	return nil
}
