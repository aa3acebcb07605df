// Package gateway is the public edge: A2A over gRPC, HTTP+JSON and JSON-RPC, and
// the agent cards. It keeps no state of tasks.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/grpc"

	notifierv1 "github.com/errandhq/errand/proto/gen/errand/notifier/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"

	"github.com/errandhq/errand/pkg/auth"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/queue"
	"github.com/errandhq/errand/services/gateway/internal/admission"
	"github.com/errandhq/errand/services/gateway/internal/grpcbind"
	"github.com/errandhq/errand/services/gateway/internal/operation"
	"github.com/errandhq/errand/services/gateway/internal/watch"
)

// Config is what a gateway needs. Connections are the caller's to close, after
// Stop.
type Config struct {
	Logger *slog.Logger
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
	// TaskStore and Notifier are connections to those services.
	TaskStore, Notifier grpc.ClientConnInterface
	// NATS reaches the executors that answer directly.
	NATS *nats.Conn
}

// Service is a running gateway. It is a lifecycle.Ending.
type Service struct {
	cfg        Config
	store      taskstorev1.TaskStoreServiceClient
	watcher    *watch.Watcher
	operations *operation.Service
	gate       *admission.Gate
	grpc       *grpc.Server

	mu       sync.Mutex
	listened []net.Listener // HTTP, then gRPC
	http     *http.Server
	stopped  bool

	serving sync.WaitGroup
	done    chan struct{}
	ended   sync.Once
	err     error
}

// New builds a gateway that doesn't listen yet.
func New(_ context.Context, cfg Config) (*Service, error) {
	if cfg.Agents == nil || cfg.Authenticator == nil {
		return nil, errors.New("a gateway needs agents and an authenticator")
	}
	s := &Service{cfg: cfg, store: taskstorev1.NewTaskStoreServiceClient(cfg.TaskStore), done: make(chan struct{})}
	limits := cfg.Agents.Limits
	s.watcher = watch.New(watch.Config{
		Client: notifierv1.NewNotifierServiceClient(cfg.Notifier), Logger: cfg.Logger, Buffer: limits.SubscriberBuffer,
	})
	s.operations = operation.New(operation.Config{
		Store: s.store, Watcher: s.watcher, Executors: queue.NewDirect(cfg.NATS), Limits: limits, Logger: cfg.Logger,
	})
	s.gate = &admission.Gate{Authenticator: cfg.Authenticator, Agents: cfg.Agents}
	s.grpc = grpcbind.NewServer(grpcbind.Config{Gate: s.gate, Operations: s.operations, Limits: limits, Logger: cfg.Logger})
	return s, nil
}

// HTTPAddr returns the address that HTTP is served on; nil before Start.
func (s *Service) HTTPAddr() net.Addr { return s.addr(0) }

// GRPCAddr returns the address that gRPC is served on; nil before Start.
func (s *Service) GRPCAddr() net.Addr { return s.addr(1) }

func (s *Service) addr(i int) net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.listened) <= i {
		return nil
	}
	return s.listened[i].Addr()
}

// Start listens and serves.
func (s *Service) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopped:
		return lifecycle.ErrStopped
	case s.http != nil:
		return nil
	}
	if err := s.listen(ctx); err != nil {
		s.close()
		return err
	}
	handler, err := s.handler(ctx, s.addresses())
	if err != nil {
		s.close()
		return err
	}
	if err := s.watcher.Start(ctx); err != nil {
		s.close()
		return fmt.Errorf("start watcher: %w", err)
	}
	s.http = newHTTPServer(handler, s.cfg.Logger)
	s.serve("HTTP", func() error { return s.http.Serve(s.listened[0]) })
	s.serve("gRPC", func() error { return s.grpc.Serve(s.listened[1]) })
	return nil
}

func (s *Service) listen(ctx context.Context) error {
	for _, address := range []string{s.cfg.HTTP, s.cfg.GRPC} {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			return fmt.Errorf("listen on %s: %w", address, err)
		}
		s.listened = append(s.listened, listener)
	}
	return nil
}

func (s *Service) close() {
	for _, listener := range s.listened {
		_ = listener.Close() // it has served nobody
	}
	s.listened = nil
}

func (s *Service) serve(name string, run func() error) {
	s.serving.Go(func() {
		err := run()
		s.mu.Lock()
		stopped := s.stopped
		s.mu.Unlock()
		if !stopped {
			s.ended.Do(func() {
				s.err = fmt.Errorf("serve %s: %w", name, err)
				close(s.done)
			})
		}
	})
}

// Done is closed when a server ended without being told to; Err says why.
func (s *Service) Done() <-chan struct{} { return s.done }

// Err is the reason for Done.
func (s *Service) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// readyTimeout bounds the look at the task store.
const readyTimeout = 2 * time.Second

// Ready fails while the gateway isn't serving, has no way to live events, or
// holds another agents file than the task store.
func (s *Service) Ready() error {
	s.mu.Lock()
	running := s.http != nil && !s.stopped
	s.mu.Unlock()
	if !running {
		return lifecycle.ErrNotRunning
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
	return s.watcher.Ready()
}
