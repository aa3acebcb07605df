package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/telemetry"
	"github.com/errandhq/errand/services/agents/scripted"
	"github.com/errandhq/errand/services/agents/tck"
	"github.com/errandhq/errand/services/allinone"
	"github.com/errandhq/errand/services/internal/process"
	"github.com/errandhq/errand/services/taskstore"
)

// devGrace is how long errand dev may take to stop.
const devGrace = 10 * time.Second

// devCommand runs all services. Anybody who reaches its ports may do everything,
// hence the loopback addresses.
type devCommand struct {
	DataDir         string     `name:"data-dir" help:"Directory for everything that must survive a restart." env:"ERRAND_DATA_DIR" default:".errand" type:"path"`
	HTTP            string     `name:"http" help:"Address for JSON-RPC, HTTP+JSON and agent cards." env:"ERRAND_HTTP" default:"127.0.0.1:8080"`
	GRPC            string     `name:"grpc" help:"Address for gRPC." env:"ERRAND_GRPC" default:"127.0.0.1:9090"`
	Ops             string     `name:"ops" help:"Address for health, readiness and metrics." env:"ERRAND_OPS" default:"127.0.0.1:9100"`
	Agents          string     `name:"agents" help:"Agents file; the scripted agent if not given." env:"ERRAND_AGENTS" type:"existingfile" placeholder:"FILE"`
	DatabaseURL     string     `name:"database-url" help:"Postgres to use instead of a SQLite file." env:"ERRAND_DATABASE_URL" placeholder:"URL"`
	NATSURL         string     `name:"nats-url" help:"NATS to use instead of the embedded server." env:"ERRAND_NATS_URL" placeholder:"URL"`
	TaskStoreListen string     `name:"taskstore-listen" help:"Address of the task store, for executors of your own and errand admin; none if not given." env:"ERRAND_TASKSTORE_LISTEN" placeholder:"ADDR"`
	NATSListen      string     `name:"nats-listen" help:"Address of the embedded NATS server for executors of your own; none if not given." env:"ERRAND_NATS_LISTEN" placeholder:"ADDR"`
	PublicURL       string     `name:"public-url" help:"URL of the root as senders reach it, for agent cards." env:"ERRAND_PUBLIC_URL" placeholder:"URL"`
	PublicGRPC      string     `name:"public-grpc" help:"gRPC address as senders reach it, for agent cards." env:"ERRAND_PUBLIC_GRPC" placeholder:"HOST:PORT"`
	LogLevel        slog.Level `name:"log-level" help:"Lowest level to log: debug, info, warn, error." env:"ERRAND_LOG_LEVEL" default:"warn"`

	taskstore.Streams
}

// Run serves until it is interrupted.
func (d *devCommand) Run(ctx context.Context, c *console) error {
	agents, err := d.loadAgents()
	if err != nil {
		return err
	}
	tel, err := telemetry.Setup(ctx, "errand", process.Version())
	if err != nil {
		return fmt.Errorf("set up telemetry: %w", err)
	}
	logger := telemetry.NewLogger(c.err, d.LogLevel)
	all := lifecycle.NewGroup(logger)
	all.AddCloser("telemetry", tel.Stop)
	ops := telemetry.NewOps(telemetry.OpsConfig{Addr: d.Ops, Ready: all.Ready, Metrics: tel.Metrics, Logger: logger})
	all.Add("operations", ops)
	services, err := allinone.New(ctx, d.config(logger, tel, agents))
	if err != nil {
		return fmt.Errorf("open %s: %w", d.DataDir, err)
	}
	all.Add("services", services)
	all.Add("banner", banner(func() { d.print(c, services, ops) }))
	return all.Run(ctx, devGrace)
}

func (d *devCommand) loadAgents() (*config.Agents, error) {
	if d.Agents == "" {
		return config.Parse(scripted.AgentsFile())
	}
	return config.Load(d.Agents)
}

func (d *devCommand) config(logger *slog.Logger, tel *telemetry.Telemetry, agents *config.Agents) allinone.Config {
	return allinone.Config{
		Logger: logger, Telemetry: tel, DataDir: d.DataDir, DatabaseURL: d.DatabaseURL, NATSURL: d.NATSURL,
		HTTP: d.HTTP, GRPC: d.GRPC, TaskStore: d.TaskStoreListen, NATS: d.NATSListen,
		PublicURL: d.PublicURL, PublicGRPC: d.PublicGRPC, Streams: d.Streams,
		Agents: agents, Handlers: []agent.Agent{scripted.New(), tck.New()},
	}
}

// print tells where everything is.
func (d *devCommand) print(c *console, s *allinone.Service, ops *telemetry.Ops) {
	lines := [][2]string{
		{"JSON-RPC", "http://" + s.HTTPAddr() + "/rpc"},
		{"HTTP+JSON", "http://" + s.HTTPAddr()},
		{"gRPC", s.GRPCAddr()},
		{"agent card", "http://" + s.HTTPAddr() + "/.well-known/agent-card.json"},
		{"readiness", "http://" + ops.Addr() + "/readyz"},
		{"data", d.data()},
	}
	if d.TaskStoreListen != "" {
		lines = append(lines, [2]string{"task store", s.TaskStoreAddr()})
	}
	if d.NATSListen != "" {
		lines = append(lines, [2]string{"NATS", s.NATSURL()})
	}
	for _, l := range lines {
		_, _ = fmt.Fprintf(c.out, "%-11s %s\n", l[0], l[1]) // nobody reads it, then
	}
	_, _ = fmt.Fprintln(c.out, "ready")
}

func (d *devCommand) data() string {
	if wd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(wd, d.DataDir); err == nil && filepath.IsLocal(rel) {
			return rel
		}
	}
	return d.DataDir
}

// banner is a part that has its say when all before it have started.
type banner func()

func (b banner) Start(context.Context) error { b(); return nil }
func (banner) Stop(context.Context) error    { return nil }
func (banner) Ready() error                  { return nil }
