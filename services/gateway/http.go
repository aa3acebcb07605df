package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"

	"github.com/errandhq/errand/services/gateway/internal/card"
	"github.com/errandhq/errand/services/gateway/internal/failure"
	"github.com/errandhq/errand/services/gateway/internal/httpbind"
	"github.com/errandhq/errand/services/gateway/internal/jsonrpc"
	"github.com/errandhq/errand/services/gateway/internal/rest"
)

// newHTTPServer returns a server with bounds for everything that a client can
// draw out. Requests that wait for a task take the deadlines off, see
// httpbind.Unhurried.
func newHTTPServer(handler http.Handler, logger *slog.Logger) *http.Server {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	const readTimeout = time.Minute
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       readTimeout,
		WriteTimeout:      readTimeout + httpbind.ResponseTimeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		Protocols:         protocols,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
}

// addresses are what cards say, from configuration or else for use on the same
// machine.
func (s *Service) addresses() card.Addresses {
	at := card.Addresses{HTTP: strings.TrimRight(s.cfg.PublicURL, "/"), GRPC: s.cfg.PublicGRPC}
	if at.HTTP == "" {
		at.HTTP = "http://" + local(s.listened[0])
	}
	if at.GRPC == "" {
		at.GRPC = local(s.listened[1])
	}
	return at
}

func local(l net.Listener) string {
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return l.Addr().String()
	}
	return net.JoinHostPort("localhost", port)
}

// handler puts the parts of HTTP together.
func (s *Service) handler(ctx context.Context, at card.Addresses) (http.Handler, error) {
	limits := s.cfg.Agents.Limits
	overREST, err := rest.New(ctx, rest.Config{Gate: s.gate, Operations: s.operations, Limits: limits, Logger: s.cfg.Logger})
	if err != nil {
		return nil, fmt.Errorf("build HTTP+JSON binding: %w", err)
	}
	r := &router{
		agents:  s.cfg.Agents,
		logger:  s.cfg.Logger,
		jsonrpc: &jsonrpc.Handler{Gate: s.gate, Operations: s.operations, Limits: limits, Logger: s.cfg.Logger},
		rest:    overREST,
		cards:   map[string]http.Handler{},
	}
	if err := r.addCards(at, time.Now()); err != nil {
		return nil, err
	}
	return otelhttp.NewHandler(recovering(r, s.cfg.Logger), "http", otelhttp.WithSpanNameFormatter(spanName)), nil
}

func spanName(_ string, r *http.Request) string { return "HTTP " + r.Method }

// recovering answers a panic as an internal error.
func recovering(next http.Handler, logger *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(v)
			}
			fail(w, r, logger, fmt.Errorf("panic: %v, stack: %s", v, debug.Stack()))
		}()
		next.ServeHTTP(w, r)
	})
}

// fail answers an error outside the bindings.
func fail(w http.ResponseWriter, r *http.Request, logger *slog.Logger, err error) {
	public := failure.Report(r.Context(), logger, "HTTP", err)
	if err := httpbind.RespondError(w, public, httpbind.JSON); err != nil {
		logger.DebugContext(r.Context(), "response not written", "error", err)
	}
}
