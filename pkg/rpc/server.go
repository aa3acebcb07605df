// Package rpc makes gRPC servers and connections that all behave alike: the same
// interceptors, keepalive, traces, size limits and ends.
package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc/filters"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/telemetry"
)

const (
	// minClientPing is how often clients may ping. Many are set to 10 s, and
	// gRPC's own minimum of 5 min would end their connections.
	minClientPing = 5 * time.Second
	// pingAfter is for servers that don't say it.
	pingAfter   = 30 * time.Second
	pingTimeout = 10 * time.Second
)

// ServerConfig has the settings of a Server.
type ServerConfig struct {
	// Addr is where to listen, host:port; port 0 takes a free one, empty opens no port.
	Addr string
	// Listeners are served too, for instance an InMemory's.
	Listeners []net.Listener
	// MaxRecvBytes and MaxSendBytes bound one message; 0 stands for gRPC's defaults.
	MaxRecvBytes, MaxSendBytes int
	// MaxCalls bounds the calls of one method that run at the same time; others are
	// refused as UNAVAILABLE, with a RetryInfo. 0 stands for no bound.
	MaxCalls int
	// MaxCallTime is the deadline of unary calls whose caller has set none, or a
	// later one. 0 stands for none.
	MaxCallTime time.Duration
	// PingAfter is how long a connection may be silent before the server pings, which
	// keeps idle streams alive through load balancers and finds dead peers. 0 stands
	// for 30 s; gRPC pings once a second at most.
	PingAfter time.Duration
	// Interceptors run inside the server's own, in this order.
	Interceptors []Interceptor
	// FailuresLogged says that one of Interceptors logs failures.
	FailuresLogged bool
	Telemetry      *telemetry.Telemetry
	Logger         *slog.Logger
}

// Server is a gRPC server with the health service. It is a lifecycle.Service.
type Server struct {
	cfg    ServerConfig
	grpc   *grpc.Server
	health *health.Server

	mu       sync.Mutex
	addr     string
	started  bool
	stopped  bool
	err      error
	done     chan struct{}
	serving  sync.WaitGroup
	doneOnce sync.Once
}

// NewServer returns a server that isn't listening yet; services are registered
// at Registrar before Start.
func NewServer(cfg ServerConfig) (*Server, error) {
	chain := []Interceptor{recovery(cfg.Logger)} // first, so that it catches panics of the others
	if !cfg.FailuresLogged {
		chain = append(chain, failures(cfg.Logger))
	}
	if cfg.MaxCalls > 0 || cfg.MaxCallTime > 0 {
		chain = append(chain, bounded(cfg.MaxCalls, cfg.MaxCallTime))
	}
	chain = append(chain, cfg.Interceptors...)
	if err := check(chain); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, grpc: grpc.NewServer(serverOptions(cfg, chain)...), health: health.NewServer(), done: make(chan struct{})}
	healthv1.RegisterHealthServer(s.grpc, s.health)
	s.health.SetServingStatus("", healthv1.HealthCheckResponse_NOT_SERVING)
	return s, nil
}

func serverOptions(cfg ServerConfig, chain []Interceptor) []grpc.ServerOption {
	unary := make([]grpc.UnaryServerInterceptor, len(chain))
	stream := make([]grpc.StreamServerInterceptor, len(chain))
	for i, interceptor := range chain {
		unary[i], stream[i] = interceptor.Unary, interceptor.Stream
	}
	options := []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(unary...),
		grpc.ChainStreamInterceptor(stream...),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minClientPing, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: cmp.Or(cfg.PingAfter, pingAfter), Timeout: pingTimeout}),
		grpc.StatsHandler(otelgrpc.NewServerHandler(
			otelgrpc.WithTracerProvider(cfg.Telemetry.Tracers),
			otelgrpc.WithMeterProvider(cfg.Telemetry.Meters),
			otelgrpc.WithPropagators(cfg.Telemetry.Propagator),
			otelgrpc.WithFilter(filters.Not(filters.HealthCheck())),
		)),
	}
	if cfg.MaxRecvBytes > 0 {
		options = append(options, grpc.MaxRecvMsgSize(cfg.MaxRecvBytes))
	}
	if cfg.MaxSendBytes > 0 {
		options = append(options, grpc.MaxSendMsgSize(cfg.MaxSendBytes))
	}
	return options
}

// Registrar is where services are registered.
func (s *Server) Registrar() grpc.ServiceRegistrar { return s.grpc }

// Start listens and serves.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return lifecycle.ErrStopped
	}
	if s.started {
		return nil
	}
	listeners := s.cfg.Listeners
	if s.cfg.Addr != "" {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.cfg.Addr)
		if err != nil {
			return fmt.Errorf("listen for gRPC: %w", err)
		}
		s.addr = listener.Addr().String()
		listeners = append(slices.Clip(listeners), listener)
	}
	s.started = true
	for _, listener := range listeners {
		s.serving.Go(func() { s.serve(listener) })
	}
	s.health.SetServingStatus("", healthv1.HealthCheckResponse_SERVING)
	return nil
}

func (s *Server) serve(listener net.Listener) {
	err := s.grpc.Serve(listener)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	s.err = fmt.Errorf("serve gRPC on %s: %w", listener.Addr(), errors.Join(err, lifecycle.ErrNotRunning))
	s.doneOnce.Do(func() { close(s.done) })
}

// Leave tells who asks for the server's health to go elsewhere, some time before
// Stop; it serves on.
func (s *Server) Leave() { s.health.Shutdown() }

// Stop tells clients to go elsewhere and waits for the running calls; when ctx
// ends, they are cut. Whoever serves streams without an end has to end them
// before, else they last until ctx ends.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	s.stopped = true
	started := s.started
	s.mu.Unlock()

	s.health.Shutdown()
	if !started {
		for _, listener := range s.cfg.Listeners {
			// It may be closed already.
			_ = listener.Close()
		}
	}
	graceful := make(chan struct{})
	go func() {
		defer close(graceful)
		s.grpc.GracefulStop()
	}()
	var err error
	select {
	case <-graceful:
	case <-ctx.Done():
		err = fmt.Errorf("wait for gRPC calls to end: %w", context.Cause(ctx))
		s.grpc.Stop()
		<-graceful
	}
	s.serving.Wait()
	s.doneOnce.Do(func() { close(s.done) })
	return err
}

// Ready tells whether the server serves.
func (s *Server) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopped:
		return lifecycle.ErrStopped
	case !s.started:
		return lifecycle.ErrNotRunning
	}
	return s.err
}

// Done is closed when the server has ended; see lifecycle.Ending.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err tells why the server ended by itself.
func (s *Server) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Addr is the port's address; empty before Start, and without a port.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addr
}
