// Package rest is the HTTP+JSON binding (A2A §11). Routes, path parameters and
// bodies are grpc-gateway's, generated from A2A's own annotations; the two
// streaming routes are ours, since grpc-gateway has no server-sent events.
package rest

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"path"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"

	"github.com/errandhq/errand/proto/gen/a2agateway"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/services/gateway/internal/admission"
	"github.com/errandhq/errand/services/gateway/internal/failure"
	"github.com/errandhq/errand/services/gateway/internal/httpbind"
	"github.com/errandhq/errand/services/gateway/internal/load"
	"github.com/errandhq/errand/services/gateway/internal/operation"
)

// Config is what the binding works with.
type Config struct {
	Gate       *admission.Gate
	Load       *load.Limit
	Operations *operation.Service
	Limits     config.Limits
	Logger     *slog.Logger
}

// Handler serves the binding below a base path, which is stripped already.
type Handler struct {
	cfg Config
	mux *runtime.ServeMux
}

// New returns the handler of the binding.
func New(ctx context.Context, cfg Config) (*Handler, error) {
	h := &Handler{cfg: cfg}
	h.mux = runtime.NewServeMux(
		runtime.WithMiddlewares(h.admit),
		runtime.WithMarshalerOption(httpbind.JSON, &marshaler{mediaType: httpbind.JSON}),
		runtime.WithMarshalerOption(httpbind.A2AJSON, &marshaler{mediaType: httpbind.A2AJSON}),
		runtime.WithErrorHandler(h.fail),
		runtime.WithRoutingErrorHandler(h.noRoute),
		runtime.WithForwardResponseOption(beforeAnswer),
		runtime.WithUnescapingMode(runtime.UnescapingModeAllExceptSlash),
		runtime.WithDisablePathLengthFallback(),
		runtime.WithDisableHTTPMethodOverride(),
		runtime.WithWriteContentLength(),
	)
	if err := a2agateway.RegisterA2AServiceHandlerServer(ctx, h.mux, unary{cfg.Operations}); err != nil {
		return nil, fmt.Errorf("register routes: %w", err)
	}
	// The last route that is registered is the first to be tried.
	for _, route := range []struct {
		method, pattern string
		handler         runtime.HandlerFunc
	}{
		{http.MethodPost, "/message:stream", h.streamMessage},
		{http.MethodPost, "/{tenant}/message:stream", h.streamMessage},
		{http.MethodGet, "/tasks/{id}:subscribe", h.subscribe},
		{http.MethodPost, "/tasks/{id}:subscribe", h.subscribe},
		{http.MethodGet, "/{tenant}/tasks/{id}:subscribe", h.subscribe},
		{http.MethodPost, "/{tenant}/tasks/{id}:subscribe", h.subscribe},
	} {
		if err := h.mux.HandlePath(route.method, route.pattern, route.handler); err != nil {
			return nil, fmt.Errorf("register %s: %w", route.pattern, err)
		}
	}
	return h, nil
}

// ServeHTTP fixes the response's media type and finds the route.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = r.Clone(r.Context())
	// grpc-gateway compares Accept as a whole, and writes a line to standard error
	// for a Content-Type that it can't parse.
	r.Header.Set("Accept", negotiate(r))
	switch header := r.Header.Get("Content-Type"); {
	case header == "":
		r.Header.Del("Content-Type")
	case !httpbind.IsMediaType(header):
		r.Header.Set("Content-Type", "unknown")
	}
	h.mux.ServeHTTP(w, r)
}

// negotiate chooses the media type of responses, errors included: the older one
// unless the client names the newer one, or speaks it and doesn't care.
func negotiate(r *http.Request) string {
	if httpbind.Accepts(r, httpbind.A2AJSON) {
		return httpbind.A2AJSON
	}
	anything := r.Header.Get("Accept") == "" || httpbind.Accepts(r, "*/*")
	if anything && httpbind.CheckContentType(r, httpbind.A2AJSON) == nil && r.ContentLength != 0 {
		return httpbind.A2AJSON
	}
	return httpbind.JSON
}

// admit stands before every route.
func (h *Handler) admit(next runtime.HandlerFunc) runtime.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request, params map[string]string) {
		ctx, leave, err := h.cfg.Load.Enter(r.Context())
		defer leave()
		r = r.WithContext(ctx)
		if err == nil {
			ctx, err = h.prepare(w, r, params)
		}
		if err != nil {
			h.fail(ctx, h.mux, nil, w, r, err)
			return
		}
		next(w, r.WithContext(ctx), params)
	}
}

// prepare does what comes before parsing, and reads the body.
func (h *Handler) prepare(w http.ResponseWriter, r *http.Request, params map[string]string) (context.Context, error) {
	ctx := r.Context()
	if r.Method == http.MethodPost {
		if err := httpbind.CheckContentType(r, httpbind.JSON, httpbind.A2AJSON); err != nil {
			return ctx, err
		}
	}
	ctx, err := h.cfg.Gate.Admit(ctx, httpbind.Admission(w, r))
	if err != nil {
		return ctx, err
	}
	// A path such as /tasks/tasks fits two routes; "tasks" is no tenant's name.
	if params["tenant"] == "tasks" {
		return ctx, a2aerr.TaskNotFound(path.Base(r.URL.Path))
	}
	if r.Method == http.MethodPost {
		data, err := httpbind.ReadBody(w, r, h.cfg.Limits.Body)
		if err != nil {
			return ctx, err
		}
		r.Body = newBody(data, params, h.cfg.Limits)
	} else if err := rewriteQuery(r.URL); err != nil {
		return ctx, admission.Refused(ctx, err)
	}
	return ctx, httpbind.Unhurried(w)
}

// fail answers an error. Of a body that it couldn't read grpc-gateway passes on
// the text alone, so the body keeps the error.
func (h *Handler) fail(ctx context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, r *http.Request, err error) {
	if b, ok := r.Body.(*body); ok && b.err != nil {
		err = admission.Refused(ctx, b.err)
	}
	public := failure.Report(ctx, h.cfg.Logger, r.Method+" "+pattern(ctx), err)
	if err := httpbind.RespondError(w, public, r.Header.Get("Accept")); err != nil {
		h.cfg.Logger.DebugContext(ctx, "response not written", "error", err)
	}
}

// pattern is the route, which tells more than the path and reveals no ids.
func pattern(ctx context.Context) string {
	if p, ok := runtime.HTTPPathPattern(ctx); ok {
		return p
	}
	return "(stream)"
}

func (h *Handler) noRoute(ctx context.Context, mux *runtime.ServeMux, m runtime.Marshaler, w http.ResponseWriter, r *http.Request, status int) {
	err := a2aerr.MethodNotFound(r.Method + " " + r.URL.Path)
	if status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", allowed(r.URL.Path))
		err = a2aerr.MethodNotAllowed(r.Method)
	}
	h.fail(ctx, mux, m, w, r, err)
}
