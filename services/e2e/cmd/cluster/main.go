// Command cluster runs an Errand cluster of separate processes on one machine, and
// ends it.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/errandhq/errand/services/e2e/internal/launch"
)

// endPatience is how long a cluster may take to end before its processes are
// killed.
const endPatience = 30 * time.Second

type folder struct {
	Dir string `help:"Folder of the cluster's data, logs and record." required:"" placeholder:"DIR"`
}

type up struct {
	folder

	Bin         string        `help:"Folder of the binaries." default:"bin" placeholder:"DIR"`
	Agents      string        `help:"Agents file." required:"" type:"existingfile" placeholder:"FILE"`
	Gateways    int           `help:"Number of gateways." default:"2"`
	TaskStores  int           `name:"taskstores" help:"Number of task stores." default:"2"`
	Notifiers   int           `help:"Number of notifiers." default:"2"`
	Executors   int           `help:"Number of executors." default:"2"`
	Executor    string        `help:"Executor's program; errand-executor if not given." placeholder:"PROGRAM"`
	HTTP        string        `name:"http" help:"Address of the front for JSON-RPC, HTTP+JSON and agent cards." default:"127.0.0.1:8080"`
	GRPC        string        `name:"grpc" help:"Address of the front for gRPC." default:"127.0.0.1:9090"`
	DatabaseURL string        `help:"Postgres database; a server is started if not given." env:"ERRAND_DATABASE_URL" placeholder:"URL"`
	NATSURL     string        `name:"nats-url" help:"NATS servers; one is started if not given." env:"ERRAND_NATS_URL" placeholder:"URL"`
	Restart     time.Duration `name:"restart-every" help:"Restart one process of each service at a time, in turn, at this interval; never if 0." placeholder:"DURATION"`
	LogLevel    slog.Level    `help:"Lowest level to log: debug, info, warn, error." default:"info"`
}

type down struct{ folder }

type commands struct {
	Up   up   `cmd:"" help:"Run a cluster until a signal ends it."`
	Down down `cmd:"" help:"End the cluster that runs in a folder."`
}

func main() {
	var c commands
	parsed := kong.Parse(&c, kong.Name("cluster"), kong.Description("Runs an Errand cluster of separate processes on one machine."), kong.UsageOnError())
	run := c.Up.run
	if parsed.Command() == "down" {
		run = c.Down.run
	}
	// Only the first signal counts: make passes on a second one, and the programs
	// that are ending must not be left behind.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx)
	stop()
	parsed.FatalIfErrorf(err)
}

func (u up) run(ctx context.Context) error {
	cluster, err := launch.Start(ctx, u.config())
	if err != nil {
		return err //nolint:wrapcheck // it says what was tried
	}
	describe(os.Stdout, cluster, u.Dir)
	var reviving sync.WaitGroup
	reviving.Go(func() { cluster.Revive(ctx, say("start again")) })
	if u.Restart > 0 {
		err = cluster.Restart(ctx, u.Restart, say("restart"))
	}
	<-ctx.Done()
	reviving.Wait()
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endPatience)
	defer cancel()
	return errors.Join(err, cluster.Stop(end))
}

func say(what string) func(*launch.Process) {
	return func(p *launch.Process) { fmt.Printf("%s %s %s\n", time.Now().Format(time.TimeOnly), what, p.Name()) }
}

func (u up) config() launch.Config {
	cfg := launch.Defaults(u.Dir, u.Bin, u.Agents)
	cfg.Gateways, cfg.TaskStores, cfg.Notifiers, cfg.Executors = u.Gateways, u.TaskStores, u.Notifiers, u.Executors
	cfg.HTTP, cfg.GRPC, cfg.DatabaseURL, cfg.NATSURL, cfg.LogLevel = u.HTTP, u.GRPC, u.DatabaseURL, u.NATSURL, u.LogLevel
	cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	if u.Executor != "" {
		cfg.ExecutorProgram = u.Executor
	}
	return cfg
}

func (d down) run(ctx context.Context) error {
	err := launch.Down(ctx, d.Dir)
	if errors.Is(err, launch.ErrNotRunning) {
		return nil
	}
	return err //nolint:wrapcheck // it says what was tried
}
