// Package executor runs agents: it waits on the work queue for their tasks,
// claims them at the task store, runs the handlers and writes what they emit.
// It also answers direct Messages.
//
// A program of one's own agents is one line, see Main.
package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/queue"
	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/pkg/telemetry"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/executor/internal/direct"
	"github.com/errandhq/errand/services/executor/internal/lease"
	"github.com/errandhq/errand/services/executor/internal/worker"
	"github.com/nats-io/nats.go"
	"google.golang.org/grpc"
)

const (
	defaultGrace    = 5 * time.Second
	defaultPatience = 5 * time.Second
	// A third of a lease leaves two more tries when a heartbeat fails.
	heartbeatsPerLease = 3
)

// Config says what an executor runs and with whom it talks.
type Config struct {
	Logger    *slog.Logger
	Telemetry *telemetry.Telemetry
	// The agents file.
	Agents *config.Agents
	// The code of the agents that this executor serves. The agents file must have
	// each of them; it may have more, which other executors serve.
	Handlers []agent.Agent
	// Messages of the task store may be as large as a task with all its artifacts.
	TaskStore grpc.ClientConnInterface
	NATS      *nats.Conn
	// How long running handlers may go on in a stop before their contexts end; 0
	// stands for 5 s.
	Grace time.Duration
	// How long a handler may go on after its context has ended before it is left
	// behind and its slot is given to others, unless as many as the agent has slots
	// were left behind already; 0 stands for 5 s.
	Patience time.Duration
}

// Service is a lifecycle.Ending: it ends by itself if one of its parts does.
type Service struct{ *lifecycle.Group }

// New returns an executor that isn't running yet. Starting succeeds while the
// task store and NATS are away; the executor is then not ready.
func New(_ context.Context, cfg Config) (*Service, error) {
	cfg.Grace, cfg.Patience = cmp.Or(cfg.Grace, defaultGrace), cmp.Or(cfg.Patience, defaultPatience)
	heartbeat, err := cfg.check()
	if err != nil {
		return nil, err
	}
	metrics, err := worker.NewMetrics(cfg.Telemetry.Meter())
	if err != nil {
		return nil, err
	}
	store := taskstorev1.NewTaskStoreServiceClient(cfg.TaskStore)
	// Names this process and no other, so that a restart never takes up leases
	// that it doesn't know.
	holder := task.NewID()
	leases := lease.NewManager(lease.Config{
		Store: store, Holder: holder, Heartbeat: heartbeat, MaxCallBytes: cfg.Agents.Limits.Event, Logger: cfg.Logger,
	})
	s := &Service{Group: lifecycle.NewGroup(cfg.Logger)}
	s.Add("leases", leases)
	s.Add("control", &control{nc: cfg.NATS, holder: holder, leases: leases})
	s.Add("agreement", newAgreement(store, cfg.Agents.Version))
	for _, a := range cfg.Handlers {
		err := s.addAgent(cfg, a, worker.Config{
			Agent: a, Settings: cfg.Agents.Agent(a.Name), MaxEventBytes: cfg.Agents.Limits.Event,
			Store: store, Holder: holder, Leases: leases, Grace: cfg.Grace, Patience: cfg.Patience,
			Metrics: metrics, Tracer: cfg.Telemetry.Tracer(), Logger: cfg.Logger,
		})
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// addAgent adds what takes an agent's tasks, unless it has none, and what
// answers its direct Messages, unless every message becomes a task.
func (s *Service) addAgent(cfg Config, a agent.Agent, w worker.Config) error {
	if a.Handler != nil && w.Settings.Lifecycle != config.LifecycleMessage {
		consumer, err := queue.NewConsumer(cfg.NATS, queue.ConsumerConfig{Agent: a.Name, Logger: cfg.Logger, Meter: cfg.Telemetry.Meter()})
		if err != nil {
			return fmt.Errorf("agent %s: %w", a.Name, err)
		}
		w.Source = consumer
		s.Add("queue of "+a.Name, consumer)
		s.Add("tasks of "+a.Name, worker.New(w))
	}
	if w.Settings.Lifecycle == config.LifecycleTask {
		return nil
	}
	responder, err := direct.New(cfg.NATS, direct.Config{
		Agent: a, Settings: w.Settings, Memory: w.Store, MaxEventBytes: w.MaxEventBytes,
		Tracer: cfg.Telemetry.Tracer(), Logger: cfg.Logger,
	})
	if err != nil {
		return fmt.Errorf("agent %s: %w", a.Name, err)
	}
	s.Add("messages of "+a.Name, responder)
	return nil
}

// check compares the code with the agents file and returns the heartbeat that
// the shortest lease needs.
func (cfg Config) check() (time.Duration, error) {
	var shortest time.Duration
	for _, a := range cfg.Handlers {
		if err := a.Validate(); err != nil {
			return 0, fmt.Errorf("check agents: %w", err)
		}
		settings := cfg.Agents.Agent(a.Name)
		if settings == nil {
			return 0, fmt.Errorf("agent %s is not in the agents file", a.Name)
		}
		if a.Handler == nil && settings.Lifecycle != config.LifecycleMessage {
			return 0, fmt.Errorf("agent %s has lifecycle %s and no Handler", a.Name, settings.Lifecycle)
		}
		if a.Messages == nil && settings.Lifecycle == config.LifecycleMessage {
			return 0, fmt.Errorf("agent %s has lifecycle %s and no Messages", a.Name, settings.Lifecycle)
		}
		if lease := settings.Lease.Value(); shortest == 0 || lease < shortest {
			shortest = lease
		}
	}
	if shortest == 0 {
		return 0, errors.New("no agents to serve")
	}
	return shortest / heartbeatsPerLease, nil
}
