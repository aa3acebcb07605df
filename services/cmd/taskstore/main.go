// Command errand-taskstore keeps tasks in a database and serves them to the
// other services.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/alecthomas/kong"

	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/rpc"
	"github.com/errandhq/errand/services/internal/link"
	"github.com/errandhq/errand/services/internal/process"
	"github.com/errandhq/errand/services/taskstore"
)

const name = "errand-taskstore"

type database struct {
	URL string `name:"database-url" help:"Database: postgres://… or sqlite:PATH." env:"ERRAND_DATABASE_URL" required:"" placeholder:"URL"`
}

type serve struct {
	process.Flags
	database
	taskstore.Streams

	GRPC      string `name:"grpc" help:"Address for the other services." env:"ERRAND_GRPC" default:":9091"`
	NATSURL   string `name:"nats-url" help:"URLs of the NATS servers." env:"ERRAND_NATS_URL" default:"nats://localhost:4222"`
	CursorKey string `name:"cursor-key" help:"Secret of at least 16 bytes that signs page tokens; the same for all task stores." env:"ERRAND_CURSOR_KEY" required:"" placeholder:"SECRET"`
}

type commands struct {
	Serve   serve    `cmd:"" default:"withargs" help:"Serve tasks (the default)."`
	Migrate database `cmd:"" help:"Bring the database to the schema that this program needs, and exit."`
}

func main() {
	var c commands
	parsed := kong.Parse(&c, kong.Name(name), kong.Description("Keeps tasks in a database and serves them to the other services."))
	if parsed.Command() == "migrate" {
		os.Exit(lifecycle.Main(func(ctx context.Context) error { return taskstore.Migrate(ctx, c.Migrate.URL) }))
	}
	os.Exit(process.Program{
		Name: name, Flags: c.Serve.Flags,
		Build: func(ctx context.Context, p *process.Process) error { return build(ctx, p, c.Serve) },
	}.Run())
}

func build(ctx context.Context, p *process.Process, s serve) error {
	nc, err := p.ConnectNATS(ctx, s.NATSURL)
	if err != nil {
		return err //nolint:wrapcheck // it says what was tried
	}
	service, err := taskstore.New(ctx, taskstore.Config{
		Logger: p.Logger, Telemetry: p.Telemetry,
		DatabaseURL: s.URL, NATS: nc, Agents: p.Agents, CursorKey: []byte(s.CursorKey), Streams: s.Streams,
	})
	if err != nil {
		return fmt.Errorf("build task store: %w", err)
	}
	p.Parts.Add("taskstore", service)
	server, err := link.NewServer(s.GRPC, nil, rpc.ServerConfig{Logger: p.Logger, Telemetry: p.Telemetry}, p.Agents.Limits)
	if err != nil {
		return err //nolint:wrapcheck // it says what was tried
	}
	service.Register(server.Registrar())
	p.Parts.Add("server", server)
	return nil
}
