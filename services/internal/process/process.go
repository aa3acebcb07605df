// Package process is what the programs of Errand share: the settings that all
// have, and a life from reading them to an exit code.
package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"github.com/alecthomas/kong"

	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/telemetry"
)

// grace is how long a process may take to stop: less than the 30 s after which
// Kubernetes kills it.
const grace = 25 * time.Second

// Flags are the settings of every service.
type Flags struct {
	Ops      string     `help:"Address for health, readiness and metrics." env:"ERRAND_OPS" default:":9100"`
	LogLevel slog.Level `help:"Lowest level to log: debug, info, warn, error." env:"ERRAND_LOG_LEVEL" default:"info"`
	Agents   string     `help:"Agents file, the same for all services." env:"ERRAND_AGENTS" required:"" type:"existingfile" placeholder:"FILE"`
}

// Process is what a service is built with.
type Process struct {
	// As in Program.
	Name      string
	Logger    *slog.Logger
	Telemetry *telemetry.Telemetry
	Agents    *config.Agents
	// Parts start in the order in which they are added and stop in reverse.
	Parts *lifecycle.Group
}

// Program is one service's main.
type Program struct {
	// As in service.name and in logs, such as errand-gateway.
	Name  string
	Flags Flags
	// Build adds the service's parts.
	Build func(ctx context.Context, p *Process) error
}

// Parse reads the command line and the environment into kong's struct of
// settings. A wrong one is explained, and ends the process.
func Parse(name, description string, settings any) {
	kong.Parse(settings, kong.Name(name), kong.Description(description), kong.UsageOnError())
}

// Run runs the program until a signal ends it and returns the exit code.
func (p Program) Run() int { return lifecycle.Main(p.run) }

func (p Program) run(ctx context.Context) error {
	agents, err := config.Load(p.Flags.Agents)
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	tel, err := telemetry.Setup(ctx, p.Name, Version())
	if err != nil {
		return fmt.Errorf("set up telemetry: %w", err)
	}
	logger := telemetry.NewLogger(os.Stderr, p.Flags.LogLevel).With("service", p.Name)
	parts := lifecycle.NewGroup(logger)
	parts.AddCloser("telemetry", tel.Stop)
	parts.Add("operations", telemetry.NewOps(telemetry.OpsConfig{
		Addr: p.Flags.Ops, Ready: parts.Ready, Metrics: tel.Metrics, Logger: logger,
	}))
	err = p.Build(ctx, &Process{Name: p.Name, Logger: logger, Telemetry: tel, Agents: agents, Parts: parts})
	if err != nil {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		return errors.Join(err, parts.Stop(stop))
	}
	parts.Add("readiness log", logReadiness(logger, parts.Ready))
	logger.InfoContext(ctx, "starting", "version", Version(), "agents_version", agents.Version)
	return parts.Run(ctx, grace) //nolint:wrapcheck // it names the part
}

// Version is the version that the program was built from, or "devel".
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}
