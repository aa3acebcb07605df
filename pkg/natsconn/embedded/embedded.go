// Package embedded runs a NATS server with JetStream inside the process, for the
// all-in-one binary and for tests. Clients reach it without a port, by
// natsconn.Config.InProcess.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/errandhq/errand/pkg/lifecycle"
)

const (
	// maxPayload is the largest that NATS recommends; what Errand sends stays far
	// below, but for direct Messages.
	maxPayload = 8 << 20

	defaultMemory = 64 << 20
	defaultDisk   = 8 << 30

	// syncInterval is how often JetStream's files are flushed to the disk. A crash
	// of the machine may lose what was written in between, and that is fine: every
	// message is a notice of something that the task store has committed, and the
	// store's relay and reaper send it again. A crash of the process alone loses
	// nothing, the written pages are the kernel's by then.
	syncInterval = 10 * time.Second

	startPatience = 30 * time.Second
	readyPoll     = 100 * time.Millisecond

	finishPatience = 5 * time.Second
	finishPoll     = time.Millisecond
)

// Config says where the server keeps its data and who may reach it.
type Config struct {
	// DataDir holds the streams. It belongs to one server at a time; a server that
	// starts on the directory of an earlier one has its streams.
	DataDir string
	// Listen is the address (host:port) for clients outside the process; empty
	// opens no port.
	Listen string
	// MaxMemory and MaxDisk bound JetStream, in bytes; 0 stands for 64 MiB and 8 GiB.
	MaxMemory int64
	MaxDisk   int64
	Logger    *slog.Logger
}

// Server is a lifecycle.Service.
type Server struct {
	cfg Config

	mu      sync.Mutex
	srv     *server.Server // nil before Start
	stopped bool
}

// New returns a server that isn't running yet.
func New(cfg Config) *Server {
	return &Server{cfg: cfg}
}

// Start starts the server and waits until clients can connect and JetStream has
// recovered its streams.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return lifecycle.ErrStopped
	}
	if s.srv != nil {
		return nil
	}
	srv, err := s.launch()
	if err != nil {
		return err
	}
	if err := waitReady(ctx, srv); err != nil {
		shutdown(srv)
		return err
	}
	s.srv = srv
	return nil
}

func (s *Server) launch() (*server.Server, error) {
	opts, err := s.options()
	if err != nil {
		return nil, err
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("configure the embedded NATS server: %w", err)
	}
	srv.SetLoggerV2(&slogLogger{logger: s.cfg.Logger}, false, false, false)
	srv.Start()
	return srv, nil
}

func (s *Server) options() (*server.Options, error) {
	opts := &server.Options{
		ServerName:         "errand",
		DontListen:         s.cfg.Listen == "",
		NoSigs:             true,
		MaxPayload:         maxPayload,
		JetStream:          true,
		StoreDir:           s.cfg.DataDir,
		JetStreamMaxMemory: orDefault(s.cfg.MaxMemory, defaultMemory),
		JetStreamMaxStore:  orDefault(s.cfg.MaxDisk, defaultDisk),
		SyncInterval:       syncInterval,
	}
	if opts.DontListen {
		return opts, nil
	}
	host, port, err := net.SplitHostPort(s.cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen address of the embedded NATS server: %w", err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("listen address of the embedded NATS server: %w", err)
	}
	opts.Host, opts.Port = host, int(n)
	if n == 0 {
		opts.Port = server.RANDOM_PORT
	}
	return opts, nil
}

func orDefault(value, otherwise int64) int64 {
	if value == 0 {
		return otherwise
	}
	return value
}

func waitReady(ctx context.Context, srv *server.Server) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for ctx.Err() == nil {
		if !srv.Running() {
			return errors.New("the embedded NATS server did not start; its log has the reason")
		}
		if srv.ReadyForConnections(readyPoll) {
			return nil
		}
	}
	return fmt.Errorf("start the embedded NATS server: %w", context.Cause(ctx))
}

// Stop ends the server and waits until its files are closed.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	srv := s.srv
	s.stopped = true
	s.mu.Unlock()
	if srv == nil {
		return nil
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		shutdown(srv)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop the embedded NATS server: %w", context.Cause(ctx))
	}
}

func shutdown(srv *server.Server) {
	finishRequests(srv)
	srv.Shutdown()
	srv.WaitForShutdown()
}

// finishRequests waits for what JetStream was asked for before: a stream that is
// made while the server shuts down is never closed.
func finishRequests(srv *server.Server) {
	for end := time.Now().Add(finishPatience); time.Now().Before(end); <-time.After(finishPoll) {
		if info, err := srv.Jsz(&server.JSzOptions{}); err != nil || info.API.Inflight == 0 {
			return
		}
	}
}

// Ready tells whether clients can connect.
func (s *Server) Ready() error {
	_, err := s.running()
	return err
}

// InProcessConn connects a client of this process; natsconn.Config.InProcess
// takes the server for it.
func (s *Server) InProcessConn() (net.Conn, error) {
	srv, err := s.running()
	if err != nil {
		return nil, err
	}
	return srv.InProcessConn()
}

// URL is where clients outside the process connect; empty if no port is open.
func (s *Server) URL() string {
	srv, err := s.running()
	if err != nil || s.cfg.Listen == "" {
		return ""
	}
	return srv.ClientURL()
}

func (s *Server) running() (*server.Server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopped:
		return nil, lifecycle.ErrStopped
	case s.srv == nil:
		return nil, lifecycle.ErrNotRunning
	}
	return s.srv, nil
}
