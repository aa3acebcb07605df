// Package taskstore is the only owner of the database: tasks, their history,
// artifacts and events, contexts, leases and dedupe keys. It serves them over
// gRPC, publishes what was committed, and does the work that no request asks for.
package taskstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/events"
	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/queue"
	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/pkg/telemetry"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/backlog"
	"github.com/errandhq/errand/services/taskstore/internal/clock"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/errandhq/errand/services/taskstore/internal/observe"
	"github.com/errandhq/errand/services/taskstore/internal/publish"
	"github.com/errandhq/errand/services/taskstore/internal/reaper"
	"github.com/errandhq/errand/services/taskstore/internal/rpcserver"
	"github.com/errandhq/errand/services/taskstore/internal/store"
	"github.com/nats-io/nats.go"
	"google.golang.org/grpc"
)

const (
	// How long a context is kept after its last accepted message.
	contextTTL = 30 * 24 * time.Hour
	// An HMAC key shorter than this isn't one.
	minCursorKey = 16
	// A database that takes longer to answer isn't ready.
	readyTimeout = 2 * time.Second
)

// Config is what a task store needs. All fields but Streams are required.
type Config struct {
	Logger    *slog.Logger
	Telemetry *telemetry.Telemetry
	// postgres://… or sqlite:PATH, of a database that Migrate has seen.
	DatabaseURL string
	// The caller's to close, after Stop.
	NATS   *nats.Conn
	Agents *config.Agents
	// Signs page tokens, 16 bytes or more; the same for all stores of a cluster.
	CursorKey []byte
	Streams   Streams
}

// Service is a running task store. It is a lifecycle.Ending.
type Service struct {
	*lifecycle.Group
	cfg    Config
	engine engine.Engine
	clock  *clock.Clock
	store  *store.Store
}

// New opens the database and builds the service. What it opened is closed by
// Stop, or at once when New fails.
func New(ctx context.Context, cfg Config) (*Service, error) {
	s := &Service{Group: lifecycle.NewGroup(cfg.Logger), cfg: cfg}
	if err := s.build(ctx); err != nil {
		return nil, errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// Register puts the store on a gRPC server, which must stop before the service.
func (s *Service) Register(r grpc.ServiceRegistrar) {
	taskstorev1.RegisterTaskStoreServiceServer(r, rpcserver.New(s.store))
	taskstorev1.RegisterAdminServiceServer(r, rpcserver.NewAdmin(s.store))
}

// Ready fails while the database doesn't answer or has another schema, and while
// a part of the service doesn't work.
func (s *Service) Ready() error {
	if err := s.Group.Ready(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	return s.store.Ready(ctx)
}

// build adds the parts in the order in which they start. They stop in reverse:
// background work first, then the store, whose last commits are published before
// the database closes.
func (s *Service) build(ctx context.Context) error {
	if len(s.cfg.CursorKey) < minCursorKey {
		return fmt.Errorf("the key of page tokens has %d bytes: want %d or more", len(s.cfg.CursorKey), minCursorKey)
	}
	if err := s.cfg.Streams.check(); err != nil {
		return err
	}
	e, parallel, err := open(ctx, s.cfg)
	if err != nil {
		return err
	}
	s.engine = e
	s.AddCloser("database", func(context.Context) error { e.Close(); return nil })
	s.clock = clock.New(e.Now, s.cfg.Logger)
	s.Add("clock", s.clock)
	work, published, err := s.addStreams()
	if err != nil {
		return err
	}
	name := "taskstore-" + task.NewID()
	publisher := publish.New(publish.Options{
		Name: name, Outbox: e, NATS: s.cfg.NATS, Events: published, Work: work, Now: s.clock.Now, Logger: s.cfg.Logger,
	})
	s.Add("publisher", publisher)
	if err := s.addStore(publisher, parallel); err != nil {
		return err
	}
	return s.addKeepers(name, published)
}

func (s *Service) addStore(publisher *publish.Publisher, parallel int) error {
	observed, err := observe.New(s.engine, s.cfg.Telemetry.Tracer(), s.cfg.Telemetry.Meter(), s.cfg.Logger)
	if err != nil {
		return fmt.Errorf("observe the database: %w", err)
	}
	queued := backlog.New(backlog.Options{Agents: s.cfg.Agents, Count: s.countQueued, Logger: s.cfg.Logger})
	s.Add("backlog", queued)
	s.store = store.New(observed, store.Options{
		Publisher: publisher, Agents: s.cfg.Agents, CursorKey: s.cfg.CursorKey, Full: queued.Full,
		Now: s.clock.Now, NewID: task.NewID, ContextTTL: contextTTL, Parallel: parallel,
	})
	s.AddCloser("store", func(context.Context) error { s.store.Close(); return nil })
	return nil
}

// countQueued tells how many work messages of an agent no executor has taken.
func (s *Service) countQueued(ctx context.Context, agent string) (int, error) {
	byTenant, err := queue.Depths(ctx, s.cfg.NATS, agent)
	if err != nil {
		return 0, fmt.Errorf("count the queue of agent %s: %w", agent, err)
	}
	sum := 0
	for _, depth := range byTenant {
		sum += int(depth) //nolint:gosec // a stream holds far fewer
	}
	return sum, nil
}

// addKeepers adds the work that one task store of a cluster does for all.
func (s *Service) addKeepers(name string, published *events.Publisher) error {
	s.Add("relay", publish.NewRelay(publish.RelayOptions{
		Holder: name, Outbox: s.engine, Roles: s.engine, Events: published, Now: s.clock.Now, Logger: s.cfg.Logger,
	}))
	gauge, err := publish.NewGauge(publish.GaugeOptions{
		Holder: name, Outbox: s.engine, Roles: s.engine, Now: s.clock.Now,
		Logger: s.cfg.Logger, Meter: s.cfg.Telemetry.Meter(),
	})
	if err != nil {
		return fmt.Errorf("build gauge of the outbox: %w", err)
	}
	s.Add("outbox gauge", gauge)
	reaper, err := reaper.New(reaper.Options{
		Holder: name, Engine: s.engine, Store: s.store, Agents: s.cfg.Agents, NATS: s.cfg.NATS,
		Now: s.clock.Now, Jumped: s.clock.Jumped, Logger: s.cfg.Logger, Meter: s.cfg.Telemetry.Meter(),
	})
	if err != nil {
		return fmt.Errorf("build reaper: %w", err)
	}
	s.Add("reaper", reaper)
	return nil
}
