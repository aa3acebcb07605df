// Package gateway is the public edge: A2A over gRPC, HTTP+JSON and JSON-RPC, and
// the agent cards. It keeps no state of tasks.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/grpc"

	notifierv1 "github.com/errandhq/errand/proto/gen/errand/notifier/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"

	"github.com/errandhq/errand/pkg/auth"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/queue"
	"github.com/errandhq/errand/pkg/rpc"
	"github.com/errandhq/errand/pkg/telemetry"
	"github.com/errandhq/errand/services/gateway/internal/admission"
	"github.com/errandhq/errand/services/gateway/internal/grpcbind"
	"github.com/errandhq/errand/services/gateway/internal/load"
	"github.com/errandhq/errand/services/gateway/internal/operation"
	"github.com/errandhq/errand/services/gateway/internal/watch"
)

// readyTimeout bounds the look at the task store.
const readyTimeout = 2 * time.Second

// Config is what a gateway needs. Connections are the caller's to close, after
// Stop.
type Config struct {
	Logger    *slog.Logger
	Telemetry *telemetry.Telemetry
	// HTTP and GRPC are the addresses to listen on, such as ":8080"; port 0 takes
	// a free one.
	HTTP, GRPC string
	// PublicURL is the URL of the root as senders reach it, for cards; empty stands
	// for localhost and the port of HTTP.
	PublicURL string
	// PublicGRPC is host:port as senders reach it, for cards; empty stands for
	// localhost and the port of GRPC.
	PublicGRPC    string
	Agents        *config.Agents
	Authenticator auth.Authenticator
	// TaskStore and Notifier are connections to those services; their calls end in
	// time by themselves.
	TaskStore, Notifier grpc.ClientConnInterface
	// NATS reaches the executors that answer directly.
	NATS *nats.Conn
	// Linger is how long a gateway that is told to stop serves on after it has said
	// that it isn't ready, for those who spread requests to take notice.
	Linger time.Duration
}

// Service is a running gateway. It is a lifecycle.Ending.
type Service struct {
	*lifecycle.Group

	cfg        Config
	store      taskstorev1.TaskStoreServiceClient
	operations *operation.Service
	gate       *admission.Gate
	load       *load.Limit
	grpc       *rpc.Server
	http       *httpServer

	leave   sync.Once
	leaving atomic.Bool
}

// New builds a gateway that doesn't listen yet.
func New(_ context.Context, cfg Config) (*Service, error) {
	if cfg.Agents == nil || cfg.Authenticator == nil || cfg.Telemetry == nil {
		return nil, errors.New("a gateway needs agents, an authenticator and telemetry")
	}
	limits := cfg.Agents.Limits
	s := &Service{
		Group: lifecycle.NewGroup(cfg.Logger),
		cfg:   cfg,
		store: taskstorev1.NewTaskStoreServiceClient(cfg.TaskStore),
		gate:  &admission.Gate{Authenticator: cfg.Authenticator, Agents: cfg.Agents},
		load:  load.New(limits.Requests, limits.BodyMemory),
	}
	watcher := watch.New(watch.Config{
		Client: notifierv1.NewNotifierServiceClient(cfg.Notifier), Logger: cfg.Logger, Buffer: limits.SubscriberBuffer,
	})
	s.operations = operation.New(operation.Config{
		Store: s.store, Watcher: watcher, Executors: queue.NewDirect(cfg.NATS), Limits: limits, Logger: cfg.Logger,
	})
	var err error
	s.grpc, err = grpcbind.NewServer(grpcbind.Config{
		Addr: cfg.GRPC, Gate: s.gate, Load: s.load, Operations: s.operations, Limits: limits, Logger: cfg.Logger, Telemetry: cfg.Telemetry,
	})
	if err != nil {
		return nil, fmt.Errorf("build gRPC server: %w", err)
	}
	s.http = newHTTPServer(cfg.HTTP, cfg.Logger, s.handler)
	s.Add("watcher", watcher)
	s.Add("gRPC", s.grpc)
	s.Add("HTTP", s.http)
	return s, nil
}

// HTTPAddr returns the address that HTTP is served on; empty before Start.
func (s *Service) HTTPAddr() string { return s.http.Addr() }

// GRPCAddr returns the address that gRPC is served on; empty before Start.
func (s *Service) GRPCAddr() string { return s.grpc.Addr() }

// Stop says that the gateway isn't ready, and lingers. Then it ends streams and
// waits at once, so that their senders go on elsewhere, lets other requests finish
// while ctx lasts, and then cuts them off.
func (s *Service) Stop(ctx context.Context) error {
	s.leave.Do(func() {
		if errors.Is(s.Group.Ready(), lifecycle.ErrNotRunning) {
			return // nobody knows it
		}
		s.leaving.Store(true)
		s.grpc.Leave()
		linger(ctx, s.cfg.Linger)
	})
	s.operations.Drain()
	return s.Group.Stop(ctx)
}

func linger(ctx context.Context, moment time.Duration) {
	timer := time.NewTimer(moment)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Ready fails while the gateway isn't serving or won't for long, has no way to live
// events, or holds another agents file than the task store.
func (s *Service) Ready() error {
	if s.leaving.Load() {
		return lifecycle.ErrStopped
	}
	if err := s.Group.Ready(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	info, err := s.store.GetInfo(ctx, &taskstorev1.GetInfoRequest{})
	if err != nil {
		return fmt.Errorf("ask task store: %w", err)
	}
	if got, want := info.GetAgentsVersion(), s.cfg.Agents.Version; got != want {
		return fmt.Errorf("agents file is version %s here and %s at the task store", want, got)
	}
	return nil
}
