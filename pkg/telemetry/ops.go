package telemetry

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
)

const (
	opsHeaderTimeout = 5 * time.Second
	opsTimeout       = 30 * time.Second
)

// OpsConfig has the settings of an Ops server.
type OpsConfig struct {
	// Addr is where it listens, host:port; port 0 takes a free one.
	Addr string
	// Ready is the readiness of the whole process, as lifecycle.Group.Ready.
	Ready   func() error
	Metrics http.Handler
	Logger  *slog.Logger
}

// Ops serves operators over HTTP: GET /healthz (the process lives), /readyz (it
// can do its job; 503 with the reason when not) and /metrics. It is a
// lifecycle.Service, and belongs first into a Group, so that it tells of the
// start and the stop of all others.
type Ops struct {
	cfg    OpsConfig
	server *http.Server
	loop   *lifecycle.Loop

	mu       sync.Mutex
	listener net.Listener // nil before Start
}

// NewOps returns a server that isn't listening yet.
func NewOps(cfg OpsConfig) *Ops {
	o := &Ops{cfg: cfg}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", o.serveReady)
	mux.Handle("GET /metrics", cfg.Metrics)
	o.server = &http.Server{
		Handler: mux, ReadHeaderTimeout: opsHeaderTimeout, ReadTimeout: opsTimeout, WriteTimeout: opsTimeout,
		ErrorLog: slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelWarn),
	}
	o.loop = lifecycle.NewLoop(o.serve)
	return o
}

func (o *Ops) serveReady(w http.ResponseWriter, _ *http.Request) {
	if err := o.cfg.Ready(); err != nil {
		answer(w, http.StatusServiceUnavailable, "not ready: "+err.Error())
		return
	}
	answer(w, http.StatusOK, "ready")
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	// A client that has gone needs no answer.
	_, _ = fmt.Fprintln(w, text)
}

// Start listens and serves.
func (o *Ops) Start(ctx context.Context) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.listener != nil {
		return o.loop.Start(ctx)
	}
	if err := o.loop.Ready(); !errors.Is(err, lifecycle.ErrNotRunning) {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.cfg.Addr)
	if err != nil {
		return fmt.Errorf("listen for health and metrics: %w", err)
	}
	o.listener = listener
	if err := o.loop.Start(ctx); err != nil {
		return errors.Join(err, listener.Close())
	}
	return nil
}

func (o *Ops) serve(ctx context.Context) error {
	closed := context.AfterFunc(ctx, func() { _ = o.server.Close() })
	defer closed()
	if err := o.server.Serve(o.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve health and metrics: %w", err)
	}
	return nil
}

// Addr is where the server listens; empty before Start.
func (o *Ops) Addr() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.listener == nil {
		return ""
	}
	return o.listener.Addr().String()
}

// Stop closes the server at once: who asks for health takes no harm.
func (o *Ops) Stop(ctx context.Context) error { return o.loop.Stop(ctx) }

// Ready tells whether the server listens.
func (o *Ops) Ready() error { return o.loop.Ready() }

// Done is closed when the server has ended; see lifecycle.Ending.
func (o *Ops) Done() <-chan struct{} { return o.loop.Done() }

// Err tells why the server ended by itself.
func (o *Ops) Err() error { return o.loop.Err() }
