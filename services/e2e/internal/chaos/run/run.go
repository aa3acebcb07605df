// Package run is a chaos run from begin to end: a cluster of its own, a load on
// it, a schedule of what is done to it meanwhile, and the check of what came out.
package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/chaos/agents"
	"github.com/errandhq/errand/services/e2e/internal/chaos/journal"
	"github.com/errandhq/errand/services/e2e/internal/chaos/load"
	"github.com/errandhq/errand/services/e2e/internal/chaos/nemesis"
	"github.com/errandhq/errand/services/e2e/internal/chaos/schedule"
	"github.com/errandhq/errand/services/e2e/internal/launch"
)

const (
	// patience is how long senders may take to finish what they began.
	patience = time.Minute
	// stopWithin bounds the end of the cluster.
	stopWithin = time.Minute
)

// Config says what a run is like.
type Config struct {
	// Seed decides the load, and the schedule unless Schedule is given.
	Seed     uint64
	Schedule schedule.Schedule
	// Duration is how long messages are sent, Pace the mean time between two steps
	// of the schedule.
	Duration, Pace time.Duration
	// Stall is as in check.Config.
	Stall time.Duration
	// Senders bounds how many conversations are open at the same time, Rate how
	// many begin each second.
	Senders int
	Rate    float64
	// Dir is empty, and gets all that the run leaves behind. The user postgres must
	// be able to reach it when the run is root's.
	Dir string
	// Bin is the folder of the binaries, see launch.Config, Agent the executor's.
	Bin, Agent string
	// Out is told how it goes.
	Out io.Writer
}

// run is one run.
type run struct {
	Config

	logger  *slog.Logger
	cluster *launch.Cluster
	nemesis *nemesis.Nemesis
	journal *journal.Journal
}

// Run runs until it has a result: whether nothing was violated. It ends early
// with ctx, and then checks what there is.
func Run(ctx context.Context, cfg Config) (bool, error) {
	r := &run{Config: cfg, journal: new(journal.Journal)}
	log, err := os.Create(r.path("chaos.log"))
	if err != nil {
		return false, fmt.Errorf("create log: %w", err)
	}
	defer func() { _ = log.Close() }()
	r.logger = slog.New(slog.NewTextHandler(log, nil))
	if r.Schedule == nil {
		r.Schedule = schedule.Deal(schedule.Config{
			Seed: cfg.Seed, Duration: cfg.Duration, Pace: cfg.Pace, Lease: agents.Lease, Processes: processes(),
		})
	}
	if err := r.announce(); err != nil {
		return false, err
	}
	if err := r.start(ctx); err != nil {
		return false, err
	}
	defer r.stop(ctx)
	if r.nemesis, err = nemesis.New(r.cluster, nemesis.ProcessesOf(r.cluster), r.Schedule, r.logger); err != nil {
		return false, err
	}
	return r.torment(ctx)
}

func (r *run) path(name string) string { return filepath.Join(r.Dir, name) }

// runs is the folder of what executors write.
func (r *run) runs() string { return r.path("runs") }

// processes are those of the cluster that start makes.
func processes() []string {
	all := []string{string(launch.NATS), string(launch.Postgres)}
	for _, kind := range []launch.Kind{launch.TaskStore, launch.Notifier, launch.Gateway, launch.Executor} {
		for i := range 2 {
			all = append(all, fmt.Sprintf("%s-%d", kind, i))
		}
	}
	return all
}

// announce prints the schedule and leaves it in the run's folder.
func (r *run) announce() error {
	file, err := os.Create(r.path("schedule"))
	if err != nil {
		return fmt.Errorf("create schedule: %w", err)
	}
	defer func() { _ = file.Close() }()
	both := io.MultiWriter(r.Out, file)
	fmt.Fprintf(both, "# seed %d, %s, %d steps\n", r.Seed, r.Duration, len(r.Schedule))
	return r.Schedule.Write(both)
}

func (r *run) start(ctx context.Context) error {
	file := r.path("agents.yaml")
	if err := errors.Join(os.WriteFile(file, agents.File(), 0o600), os.Mkdir(r.runs(), 0o700)); err != nil {
		return fmt.Errorf("prepare the run: %w", err)
	}
	cfg := launch.Defaults(r.path("cluster"), r.Bin, file)
	cfg.ExecutorProgram, cfg.Links, cfg.Logger = r.Agent, true, r.logger
	cfg.Env = []string{journal.RunsVariable + "=" + r.runs()}
	var err error
	if r.cluster, err = launch.Start(ctx, cfg); err != nil {
		return fmt.Errorf("start the cluster: %w", err)
	}
	return nil
}

func (r *run) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	if err := r.cluster.Stop(ctx); err != nil {
		r.logger.ErrorContext(ctx, "stop the cluster", "error", err)
	}
}

// torment has load and schedule side by side, and then looks at what came out.
func (r *run) torment(ctx context.Context) (bool, error) {
	client, err := binding.NewClient("http://"+r.cluster.HTTP(), r.cluster.GRPC())
	if err != nil {
		return false, err
	}
	defer func() { _ = client.Close() }()
	var beside sync.WaitGroup
	defer beside.Wait()
	watching, done := context.WithCancel(context.WithoutCancel(ctx))
	defer done()
	beside.Go(func() { r.nemesis.Watch(watching) })
	beside.Go(func() { r.report(watching) })
	ends, cancel := context.WithTimeout(ctx, r.Duration)
	defer cancel()
	var schedule sync.WaitGroup
	schedule.Go(func() { r.nemesis.Run(ends) })
	load.Run(ends, load.Config{
		Client: client, Agents: []string{agents.Worker, agents.Hybrid}, Hybrid: agents.Hybrid,
		Seed: r.Seed, Senders: r.Senders, Rate: r.Rate, Patience: patience, Journal: r.journal, Logger: r.logger,
	})
	schedule.Wait()
	return r.verdict(context.WithoutCancel(ctx))
}
