package gateway

import (
	"cmp"
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

// handler puts the parts of HTTP together for a server at an address.
func (s *Service) handler(ctx context.Context, addr net.Addr) (http.Handler, error) {
	limits := s.cfg.Agents.Limits
	overREST, err := rest.New(ctx, rest.Config{Gate: s.gate, Load: s.load, Operations: s.operations, Limits: limits, Logger: s.cfg.Logger})
	if err != nil {
		return nil, fmt.Errorf("build HTTP+JSON binding: %w", err)
	}
	r := &router{
		agents:  s.cfg.Agents,
		logger:  s.cfg.Logger,
		jsonrpc: &jsonrpc.Handler{Gate: s.gate, Load: s.load, Operations: s.operations, Limits: limits, Logger: s.cfg.Logger},
		rest:    overREST,
		cards:   map[string]http.Handler{},
	}
	if err := r.addCards(s.addresses(addr), time.Now()); err != nil {
		return nil, err
	}
	return otelhttp.NewHandler(recovering(r, s.cfg.Logger), "HTTP",
		otelhttp.WithTracerProvider(s.cfg.Telemetry.Tracers),
		otelhttp.WithMeterProvider(s.cfg.Telemetry.Meters),
		otelhttp.WithPropagators(s.cfg.Telemetry.Propagator),
		otelhttp.WithSpanNameFormatter(func(operation string, r *http.Request) string { return operation + " " + r.Method }),
	), nil
}

// addresses are what cards say: from configuration, or else for use on the same
// machine.
func (s *Service) addresses(addr net.Addr) card.Addresses {
	return card.Addresses{
		HTTP: cmp.Or(strings.TrimRight(s.cfg.PublicURL, "/"), "http://"+local(addr.String())),
		GRPC: cmp.Or(s.cfg.PublicGRPC, local(s.grpc.Addr())),
	}
}

func local(addr string) string {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	return net.JoinHostPort("localhost", port)
}

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
