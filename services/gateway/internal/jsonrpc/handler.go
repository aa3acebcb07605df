// Package jsonrpc is the JSON-RPC 2.0 binding (A2A §9): it checks the envelope,
// chooses the operation by a switch, and leaves everything else to it.
package jsonrpc

import (
	"context"
	"log/slog"
	"net/http"

	"google.golang.org/grpc/codes"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/sse"
	"github.com/errandhq/errand/services/gateway/internal/admission"
	"github.com/errandhq/errand/services/gateway/internal/failure"
	"github.com/errandhq/errand/services/gateway/internal/httpbind"
	"github.com/errandhq/errand/services/gateway/internal/load"
	"github.com/errandhq/errand/services/gateway/internal/operation"
)

// Handler serves the binding at one path.
type Handler struct {
	Gate       *admission.Gate
	Load       *load.Limit
	Operations *operation.Service
	Limits     config.Limits
	Logger     *slog.Logger
}

// ServeHTTP answers one request. Every JSON-RPC response has HTTP status 200,
// except where HTTP itself refuses.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := exchange{Handler: h, w: w, r: r, request: request{ID: null}}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		public := failure.Report(r.Context(), h.Logger, "JSON-RPC", a2aerr.MethodNotAllowed(r.Method))
		x.written(httpbind.RespondError(w, public, httpbind.JSON))
		return
	}
	if err := httpbind.CheckContentType(r, httpbind.JSON); err != nil {
		x.fail(err)
		return
	}
	ctx, leave, refusal := h.Load.Enter(r.Context())
	defer leave()
	if refusal == nil {
		ctx, refusal = h.Gate.Admit(ctx, httpbind.Admission(w, r))
	}
	x.r = r.WithContext(ctx)
	if refusedByHTTP(refusal) {
		x.fail(refusal)
		return
	}
	err := x.read()
	if refusal != nil { // not told before, so that it has the request's id
		err = refusal
	}
	if err != nil {
		x.fail(err)
		return
	}
	x.serve()
}

// read reads the request object.
func (x *exchange) read() error {
	body, err := httpbind.ReadBody(x.w, x.r, x.Limits.Body)
	if err == nil {
		err = httpbind.Unhurried(x.w)
	}
	if err == nil {
		x.request, err = parse(body, x.Limits)
	}
	return err
}

// refusedByHTTP tells whether an error has an HTTP status of its own.
func refusedByHTTP(err error) bool {
	if err == nil {
		return false
	}
	code := a2aerr.From(err).Code
	return code == codes.Unauthenticated || code == codes.PermissionDenied
}

// exchange is one request and its response.
type exchange struct {
	*Handler

	w       http.ResponseWriter
	r       *http.Request
	request request
}

func (x *exchange) ctx() context.Context { return x.r.Context() }

// fail answers with an error. One that refuses a SendStreamingMessage whose
// sender reads events is an event, since the official Go client reads nothing
// else there; everybody reads a plain error of the other operations.
func (x *exchange) fail(err error) {
	public := failure.Report(x.ctx(), x.Logger, x.request.Method, err)
	body, err := x.request.failure(public)
	if err != nil {
		x.Logger.ErrorContext(x.ctx(), "error not encoded", "error", err)
		return
	}
	httpbind.ErrorHeaders(x.w, public)
	status := http.StatusOK
	if refusedByHTTP(public) || public.HTTPStatus == http.StatusUnsupportedMediaType {
		status = public.HTTPStatus
	}
	if x.request.Method == sendStreamingMessage && httpbind.Accepts(x.r, sse.MediaType) && status == http.StatusOK {
		x.failAsEvent(body)
		return
	}
	x.written(httpbind.Respond(x.w, status, httpbind.JSON, body))
}

func (x *exchange) failAsEvent(body []byte) {
	out, err := sse.Start(x.w, x.Limits.Write.Value())
	if err == nil {
		err = out.Event(sse.Event{Name: "error", Data: body})
	}
	x.written(err)
}

// written notes a response that didn't reach the sender, who is gone then.
func (x *exchange) written(err error) {
	if err != nil {
		x.Logger.DebugContext(x.ctx(), "response not written", "error", err)
	}
}
