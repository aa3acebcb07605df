// Command errand-gateway serves A2A to senders.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/errandhq/errand/pkg/auth"
	"github.com/errandhq/errand/services/gateway"
	"github.com/errandhq/errand/services/internal/process"
)

const name = "errand-gateway"

type settings struct {
	process.Flags

	HTTP       string        `name:"http" help:"Address for JSON-RPC, HTTP+JSON and agent cards." env:"ERRAND_HTTP" default:":8080"`
	GRPC       string        `name:"grpc" help:"Address for gRPC." env:"ERRAND_GRPC" default:":9090"`
	PublicURL  string        `name:"public-url" help:"URL of the root as senders reach it, for agent cards; the local address if not given." env:"ERRAND_PUBLIC_URL" placeholder:"URL"`
	PublicGRPC string        `name:"public-grpc" help:"gRPC address as senders reach it, for agent cards; the local address if not given." env:"ERRAND_PUBLIC_GRPC" placeholder:"HOST:PORT"`
	TaskStore  string        `name:"taskstore" help:"Addresses of the task stores, with commas between; they take turns." env:"ERRAND_TASKSTORE" default:"localhost:9091"`
	Notifier   string        `name:"notifier" help:"Addresses of the notifiers, with commas between; they take turns." env:"ERRAND_NOTIFIER" default:"localhost:9092"`
	Linger     time.Duration `name:"linger" help:"How long to serve on after a signal to stop, while /readyz says so already." env:"ERRAND_LINGER" default:"2s"`
	NATSURL    string        `name:"nats-url" help:"URLs of the NATS servers." env:"ERRAND_NATS_URL" default:"nats://localhost:4222"`
}

func main() {
	var s settings
	process.Parse(name, "Serves A2A to senders.", &s)
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
	notifications, err := p.ConnectNotifier(s.Notifier)
	if err != nil {
		return err //nolint:wrapcheck // it says what was tried
	}
	service, err := gateway.New(ctx, gateway.Config{
		Logger: p.Logger, Telemetry: p.Telemetry,
		HTTP: s.HTTP, GRPC: s.GRPC, PublicURL: s.PublicURL, PublicGRPC: s.PublicGRPC,
		Agents: p.Agents, Authenticator: auth.Anonymous{}, TaskStore: store, Notifier: notifications, NATS: nc, Linger: s.Linger,
	})
	if err != nil {
		return fmt.Errorf("build gateway: %w", err)
	}
	p.Parts.Add("gateway", service)
	return nil
}
