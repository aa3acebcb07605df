// Package worker runs one agent's tasks: it takes work from the queue for as
// many turns as it has free slots, claims the tasks, and runs their handlers.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/queue"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/executor/internal/lease"
	"go.opentelemetry.io/otel/trace"
)

// Source gives out work, blocking until there is some; a *queue.Consumer is one.
type Source interface {
	Next(ctx context.Context, free int) ([]queue.Delivery, error)
}

// Config says what a Worker needs.
type Config struct {
	Agent    agent.Agent
	Settings *config.Agent
	// Encoded size that no event may exceed.
	MaxEventBytes int
	Source        Source
	Store         taskstorev1.TaskStoreServiceClient
	Holder        string
	Leases        *lease.Manager
	// How long running handlers may go on in a stop before they are told, and how
	// long they may go on after they were told that their context has ended.
	Grace    time.Duration
	Patience time.Duration
	Metrics  *Metrics
	Tracer   trace.Tracer
	Logger   *slog.Logger
}

// Worker is a lifecycle.Service.
type Worker struct {
	cfg       Config
	loop      *lifecycle.Loop
	slots     slots
	abandoned *abandoned
	turns     sync.WaitGroup
	running   running

	// Ends when running handlers are to give up.
	draining context.Context //nolint:containedctx // shared by all turns
	drain    context.CancelFunc
	// Ends everything, for a stop that can't wait.
	life context.Context //nolint:containedctx // of all turns
	kill context.CancelCauseFunc
}

// New returns a worker that isn't running yet.
func New(cfg Config) *Worker {
	w := &Worker{cfg: cfg, slots: newSlots(cfg.Settings.Concurrency), abandoned: newAbandoned(cfg.Settings.Concurrency)}
	w.draining, w.drain = context.WithCancel(context.Background())
	w.life, w.kill = context.WithCancelCause(context.Background())
	w.loop = lifecycle.NewLoop(w.fetch)
	return w
}

// Start begins to take work.
func (w *Worker) Start(ctx context.Context) error { return w.loop.Start(ctx) }

// Ready tells whether work is being taken.
func (w *Worker) Ready() error {
	if err := w.loop.Ready(); err != nil {
		return err
	}
	if err := w.abandoned.ready(); err != nil {
		return fmt.Errorf("agent %s: %w", w.cfg.Agent.Name, err)
	}
	return nil
}

// Done and Err make the worker a lifecycle.Ending.
func (w *Worker) Done() <-chan struct{} { return w.loop.Done() }

// Err tells why the worker ended by itself.
func (w *Worker) Err() error { return w.loop.Err() }

// Stop takes no more work and waits for the turns that are running: as they are
// for the grace, then asked to give up, then, when ctx ends, no longer.
func (w *Worker) Stop(ctx context.Context) error {
	err := w.loop.Stop(ctx)
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		w.turns.Wait()
	}()
	grace := time.NewTimer(w.cfg.Grace)
	defer grace.Stop()
	select {
	case <-idle:
	case <-grace.C:
	case <-ctx.Done():
	}
	w.drain()
	defer w.kill(agent.ErrLeaseLost)
	select {
	case <-idle:
		return err
	case <-ctx.Done():
		return errors.Join(err, fmt.Errorf("wait for turns to end: %w", context.Cause(ctx)))
	}
}
