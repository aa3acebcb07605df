// Package allinone runs all services of Errand in one process: on a laptop with
// SQLite and an embedded NATS server, in tests, or on a Postgres and a NATS of
// one's own. The services are the same as in a cluster; only the links between
// them are in memory.
package allinone

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/nats-io/nats.go"
	"google.golang.org/grpc"

	"github.com/errandhq/errand/pkg/auth"
	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/natsconn"
	"github.com/errandhq/errand/pkg/natsconn/embedded"
	"github.com/errandhq/errand/pkg/rpc"
	"github.com/errandhq/errand/services/executor"
	"github.com/errandhq/errand/services/gateway"
	"github.com/errandhq/errand/services/internal/link"
	"github.com/errandhq/errand/services/notifier"
	"github.com/errandhq/errand/services/taskstore"
)

// Service is all services. It is a lifecycle.Ending.
type Service struct {
	*lifecycle.Group
	cfg     Config
	gateway *gateway.Service
	store   *rpc.Server
	nats    *embedded.Server
}

// New opens the data, migrates the schema and builds the services. What it
// opened is closed by Stop, or at once when New fails.
func New(ctx context.Context, cfg Config) (*Service, error) {
	s := &Service{Group: lifecycle.NewGroup(cfg.Logger), cfg: cfg}
	if err := s.build(ctx); err != nil {
		return nil, errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// HTTPAddr is the address that serves JSON-RPC, HTTP+JSON and cards.
func (s *Service) HTTPAddr() string { return s.gateway.HTTPAddr() }

// GRPCAddr is the address that serves gRPC.
func (s *Service) GRPCAddr() string { return s.gateway.GRPCAddr() }

// TaskStoreAddr is the address for executors in other processes; empty if none
// was asked for.
func (s *Service) TaskStoreAddr() string { return s.store.Addr() }

// NATSURL is the URL for executors in other processes; empty if none was asked
// for.
func (s *Service) NATSURL() string {
	if s.nats == nil {
		return s.cfg.NATSURL
	}
	return s.nats.URL()
}

func (s *Service) build(ctx context.Context) error {
	if err := os.MkdirAll(s.cfg.DataDir, 0o700); err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	if err := s.lockData(); err != nil {
		return err
	}
	nc, err := s.connectNATS(ctx)
	if err != nil {
		return err
	}
	store, err := s.addTaskStore(ctx, nc)
	if err != nil {
		return err
	}
	notifications, err := s.addNotifier(ctx, nc, store)
	if err != nil {
		return err
	}
	if err := s.addExecutor(ctx, nc, store); err != nil {
		return err
	}
	s.gateway, err = gateway.New(ctx, gateway.Config{
		Logger: s.cfg.Logger.With("service", "gateway"), Telemetry: s.cfg.Telemetry,
		HTTP: s.cfg.HTTP, GRPC: s.cfg.GRPC, PublicURL: s.cfg.PublicURL, PublicGRPC: s.cfg.PublicGRPC,
		Agents: s.cfg.Agents, Authenticator: auth.Anonymous{},
		TaskStore: store, Notifier: notifications, NATS: nc,
	})
	if err != nil {
		return fmt.Errorf("build gateway: %w", err)
	}
	s.Add("gateway", s.gateway)
	return nil
}

// connectNATS starts the embedded server unless there is one to connect to.
func (s *Service) connectNATS(ctx context.Context) (*nats.Conn, error) {
	cfg := natsconn.Config{URL: s.cfg.NATSURL, Name: "errand", Logger: s.cfg.Logger}
	if s.cfg.NATSURL == "" {
		s.nats = embedded.New(embedded.Config{
			DataDir: filepath.Join(s.cfg.DataDir, streamsDir), Listen: s.cfg.NATS, MaxDisk: streamsDisk,
			Logger: s.cfg.Logger.With("service", "nats"),
		})
		s.AddCloser("nats server", s.nats.Stop)
		if err := s.nats.Start(ctx); err != nil {
			return nil, fmt.Errorf("start NATS server: %w", err)
		}
		cfg.InProcess = s.nats
	}
	nc, err := natsconn.Connect(ctx, cfg)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what was tried
	}
	s.AddCloser("nats connection", func(context.Context) error { nc.Close(); return nil })
	return nc, nil
}

func (s *Service) addTaskStore(ctx context.Context, nc *nats.Conn) (grpc.ClientConnInterface, error) {
	key, err := s.cfg.cursorKey()
	if err != nil {
		return nil, err
	}
	if err := taskstore.Migrate(ctx, s.cfg.databaseURL()); err != nil {
		return nil, fmt.Errorf("migrate the database: %w", err)
	}
	store, err := taskstore.New(ctx, taskstore.Config{
		Logger: s.cfg.Logger.With("service", "taskstore"), Telemetry: s.cfg.Telemetry,
		DatabaseURL: s.cfg.databaseURL(), NATS: nc, Agents: s.cfg.Agents, CursorKey: key, Streams: s.cfg.Streams,
	})
	if err != nil {
		return nil, fmt.Errorf("build task store: %w", err)
	}
	s.Add("taskstore", store)
	server, memory, err := s.serve("taskstore", s.cfg.TaskStore, store.Register)
	if err != nil {
		return nil, err
	}
	s.store = server
	conn, err := link.TaskStore("", memory, s.cfg.Agents.Limits, s.cfg.Telemetry)
	return s.connected("taskstore", conn, err)
}

func (s *Service) addNotifier(ctx context.Context, nc *nats.Conn, store grpc.ClientConnInterface) (grpc.ClientConnInterface, error) {
	service, err := notifier.New(ctx, notifier.Config{
		Logger: s.cfg.Logger.With("service", "notifier"), Telemetry: s.cfg.Telemetry, TaskStore: store, NATS: nc,
	})
	if err != nil {
		return nil, fmt.Errorf("build notifier: %w", err)
	}
	s.Add("notifier", service)
	_, memory, err := s.serve("notifier", "", service.Register)
	if err != nil {
		return nil, err
	}
	conn, err := link.Notifier("", memory, s.cfg.Agents.Limits, s.cfg.Telemetry)
	return s.connected("notifier", conn, err)
}

func (s *Service) addExecutor(ctx context.Context, nc *nats.Conn, store grpc.ClientConnInterface) error {
	agents := s.cfg.served(ctx)
	if len(agents) == 0 {
		return nil
	}
	service, err := executor.New(ctx, executor.Config{
		Logger: s.cfg.Logger.With("service", "executor"), Telemetry: s.cfg.Telemetry,
		Agents: s.cfg.Agents, Handlers: agents, TaskStore: store, NATS: nc,
	})
	if err != nil {
		return fmt.Errorf("build executor: %w", err)
	}
	s.Add("executor", service)
	return nil
}

// serve serves a service in memory, and on addr unless that is empty.
func (s *Service) serve(name, addr string, register func(grpc.ServiceRegistrar)) (*rpc.Server, *rpc.InMemory, error) {
	memory := rpc.NewInMemory()
	cfg := rpc.ServerConfig{Telemetry: s.cfg.Telemetry, Logger: s.cfg.Logger.With("service", name)}
	server, err := link.NewServer(addr, memory, cfg, s.cfg.Agents.Limits)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	register(server.Registrar())
	s.Add(name+" server", server)
	return server, memory, nil
}

// connected closes a connection when everything that uses it has stopped.
func (s *Service) connected(name string, conn *grpc.ClientConn, err error) (grpc.ClientConnInterface, error) {
	if err != nil {
		return nil, err
	}
	s.AddCloser(name+" connection", func(context.Context) error { return conn.Close() })
	return conn, nil
}
