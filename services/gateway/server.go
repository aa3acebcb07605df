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

	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/services/gateway/internal/httpbind"
)

// httpServer is an http.Server as a lifecycle.Ending. Its handler is built when
// the address is known.
type httpServer struct {
	addr    string
	handler func(ctx context.Context, addr net.Addr) (http.Handler, error)
	server  *http.Server
	serving sync.WaitGroup
	done    chan struct{}

	mu       sync.Mutex
	listener net.Listener // nil before Start
	stopped  bool
	err      error
}

// newHTTPServer returns a server with bounds for everything that a client can
// draw out. Requests that wait for a task take the deadlines off, see
// httpbind.Unhurried.
func newHTTPServer(
	addr string, logger *slog.Logger, handler func(ctx context.Context, addr net.Addr) (http.Handler, error),
) *httpServer {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	const readTimeout = time.Minute
	return &httpServer{addr: addr, handler: handler, done: make(chan struct{}), server: &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       readTimeout,
		WriteTimeout:      readTimeout + httpbind.ResponseTimeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		Protocols:         protocols,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}}
}

func (s *httpServer) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return ""
	}
	return s.listener.Addr().String()
}

func (s *httpServer) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopped:
		return lifecycle.ErrStopped
	case s.listener != nil:
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.addr)
	if err != nil {
		return fmt.Errorf("listen for HTTP: %w", err)
	}
	if s.server.Handler, err = s.handler(ctx, listener.Addr()); err != nil {
		return errors.Join(err, listener.Close())
	}
	s.listener = listener
	s.serving.Go(func() { s.serve(listener) })
	return nil
}

func (s *httpServer) serve(listener net.Listener) {
	err := s.server.Serve(listener)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.err = fmt.Errorf("serve HTTP: %w", err)
	}
	close(s.done)
}

// Stop waits for running requests, and cuts them off when ctx ends.
func (s *httpServer) Stop(ctx context.Context) error {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	err := s.server.Shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("wait for HTTP requests to end: %w", err)
		_ = s.server.Close() // what Shutdown waited for in vain
	}
	s.serving.Wait()
	return err
}

func (s *httpServer) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopped:
		return lifecycle.ErrStopped
	case s.listener == nil:
		return lifecycle.ErrNotRunning
	}
	return s.err
}

func (s *httpServer) Done() <-chan struct{} { return s.done }

func (s *httpServer) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
