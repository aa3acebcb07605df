package launch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// startPatience bounds a start, and what is ended after one that failed.
const startPatience = 2 * time.Minute

// Cluster is a running cluster.
type Cluster struct {
	cfg     Config
	lock    *os.File
	network *network
	front   struct{ http, grpc *front }

	services       *services
	postgres, nats string // URLs

	stopping sync.Once
	stopErr  error

	mu        sync.Mutex
	processes []*Process
	launcher  recorded
}

// Start starts a cluster and waits until all of it is ready. A start that fails
// ends what it had started.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	lock, err := claimDir(ctx, cfg.Dir)
	if err != nil {
		return nil, err
	}
	c := &Cluster{cfg: cfg, lock: lock}
	if cfg.Links {
		c.network = newNetwork()
	}
	if err := c.start(ctx); err != nil {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), startPatience)
		defer cancel()
		return nil, errors.Join(fmt.Errorf("start the cluster: %w", err), c.Stop(end))
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	processes, err := systemProcesses(ctx)
	if err != nil {
		return err
	}
	c.launcher = recorded{Name: "launcher", PID: os.Getpid(), Command: processes[os.Getpid()].command}
	free := &ports{given: map[int]bool{}}
	steps := []func(ctx context.Context, free *ports) error{c.listen, c.startServers, c.migrate, c.startServices}
	for _, step := range steps {
		if err := step(ctx, free); err != nil {
			return err
		}
	}
	return nil
}

// listen takes the front's addresses, which the gateways name in cards.
func (c *Cluster) listen(ctx context.Context, _ *ports) error {
	var err error
	if c.front.http, err = openFront(ctx, c.cfg.HTTP); err != nil {
		return err
	}
	c.front.grpc, err = openFront(ctx, c.cfg.GRPC)
	return err
}

// startServers starts Postgres and NATS where no URL was given.
func (c *Cluster) startServers(ctx context.Context, free *ports) error {
	c.postgres, c.nats = c.cfg.DatabaseURL, c.cfg.NATSURL
	var programs []program
	if c.postgres == "" {
		address, err := free.address(ctx)
		if err != nil {
			return err
		}
		server, err := postgresProgram(ctx, c.cfg.Dir, address)
		if err != nil {
			return err
		}
		c.postgres = postgresURL(address)
		programs = append(programs, server)
	}
	if c.nats == "" {
		address, addressErr := free.address(ctx)
		monitor, monitorErr := free.address(ctx)
		if err := errors.Join(addressErr, monitorErr); err != nil {
			return err
		}
		server, err := natsProgram(c.cfg, address, monitor)
		if err != nil {
			return err
		}
		c.nats = "nats://" + address
		programs = append(programs, server)
	}
	return c.run(ctx, programs)
}

func (c *Cluster) migrate(ctx context.Context, _ *ports) error {
	cmd := exec.CommandContext(ctx, filepath.Join(c.cfg.Bin, "errand-taskstore"), "migrate", "--database-url", c.postgres)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("migrate the database: %w: %s", err, out)
	}
	return nil
}

func (c *Cluster) startServices(ctx context.Context, free *ports) error {
	var err error
	if c.services, err = newServices(ctx, c.cfg, free); err != nil {
		return err
	}
	s := c.services
	if s.cursorKey, err = cursorKey(c.cfg.Dir); err != nil {
		return err
	}
	s.network, s.postgres, s.nats = c.network, c.postgres, c.nats
	s.frontHTTP, s.frontGRPC = reachable(c.front.http.listener), reachable(c.front.grpc.listener)
	programs, err := s.programs(ctx)
	if err != nil {
		return err
	}
	if err := c.run(ctx, programs); err != nil {
		return err
	}
	c.serve()
	return nil
}

// serve opens the front.
func (c *Cluster) serve() {
	var web, rpc []dial
	for _, gateway := range c.services.gateways {
		web = append(web, c.network.dialer("front", gateway.name, gateway.http))
		rpc = append(rpc, c.network.dialer("front", gateway.name, gateway.grpc))
	}
	var http1, http2 http.Protocols
	http1.SetHTTP1(true)
	http2.SetUnencryptedHTTP2(true)
	c.front.http.serve(web, &http1, c.cfg.Logger)
	c.front.grpc.serve(rpc, &http2, c.cfg.Logger)
}

// run starts programs at the same time and waits until all are ready.
func (c *Cluster) run(ctx context.Context, programs []program) error {
	var started []*Process
	for _, program := range programs {
		program.log = filepath.Join(c.cfg.Dir, "logs", program.name+".log")
		p := &Process{program: program, logger: c.cfg.Logger, started: c.note}
		if err := p.Start(ctx); err != nil {
			return err
		}
		started = append(started, p)
	}
	for _, p := range started {
		if err := p.Ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// note records a run, so that it can be ended if the launcher can't do it.
func (c *Cluster) note(p *Process) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.processes, p) {
		c.processes = append(c.processes, p)
	}
	r := record{Launcher: c.launcher}
	for _, p := range c.processes {
		r.Processes = append(r.Processes, recorded{Name: p.name, Kind: p.kind, PID: p.PID(), Command: p.last.Load().command})
	}
	return r.write(c.cfg.Dir)
}

// HTTP is the front's address for JSON-RPC, HTTP+JSON and cards, host:port.
func (c *Cluster) HTTP() string { return reachable(c.front.http.listener) }

// GRPC is the front's address for gRPC, host:port.
func (c *Cluster) GRPC() string { return reachable(c.front.grpc.listener) }

// TaskStores are the addresses of the task stores, past all links.
func (c *Cluster) TaskStores() []string {
	var addresses []string
	for _, store := range c.services.taskStores {
		addresses = append(addresses, store.grpc)
	}
	return addresses
}

// DatabaseURL is that of the database, past all links.
func (c *Cluster) DatabaseURL() string { return c.postgres }

// NATSURL is that of the NATS server, past all links.
func (c *Cluster) NATSURL() string { return c.nats }

// Processes are all processes in the order of their first start.
func (c *Cluster) Processes() []*Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.processes)
}

// Process is the process of that name, such as gateway-0, taskstore-1, notifier-0,
// executor-1, postgres, nats; nil if there is none.
func (c *Cluster) Process(name string) *Process {
	for _, p := range c.Processes() {
		if p.name == name {
			return p
		}
	}
	return nil
}
