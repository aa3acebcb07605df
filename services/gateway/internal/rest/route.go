package rest

import (
	"cmp"
	"net/http"
	"strings"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"github.com/errandhq/errand/pkg/a2ajson"
	"github.com/errandhq/errand/services/gateway/internal/failure"
	"github.com/errandhq/errand/services/gateway/internal/httpbind"
	"github.com/errandhq/errand/services/gateway/internal/operation"
)

// unary is the service as grpc-gateway sees it; it never calls the streaming
// operations of a server in the same process.
type unary struct{ *operation.Service }

func (unary) SendStreamingMessage(*a2apb.SendMessageRequest, a2apb.A2AService_SendStreamingMessageServer) error {
	return http.ErrNotSupported
}

func (unary) SubscribeToTask(*a2apb.SubscribeToTaskRequest, a2apb.A2AService_SubscribeToTaskServer) error {
	return http.ErrNotSupported
}

func (h *Handler) streamMessage(w http.ResponseWriter, r *http.Request, params map[string]string) {
	request := &a2apb.SendMessageRequest{}
	if b, ok := r.Body.(*body); ok && b.decode(request) != nil {
		h.fail(r.Context(), h.mux, nil, w, r, b.err)
		return
	}
	if tenant := params["tenant"]; tenant != "" {
		request.Tenant = tenant
	}
	stream, err := h.cfg.Operations.StreamMessage(r.Context(), request, httpbind.LastEventID(r))
	h.serve(w, r, stream, err)
}

func (h *Handler) subscribe(w http.ResponseWriter, r *http.Request, params map[string]string) {
	request := &a2apb.SubscribeToTaskRequest{}
	if b, ok := r.Body.(*body); ok && b.decode(request) != nil {
		h.fail(r.Context(), h.mux, nil, w, r, b.err)
		return
	}
	request.Id = params["id"]
	if tenant := cmp.Or(params["tenant"], r.URL.Query().Get("tenant")); tenant != "" {
		request.Tenant = tenant
	}
	stream, err := h.cfg.Operations.Subscribe(r.Context(), request, httpbind.LastEventID(r))
	h.serve(w, r, stream, err)
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request, stream *operation.Stream, err error) {
	if err != nil {
		h.fail(r.Context(), h.mux, nil, w, r, err)
		return
	}
	httpbind.ServeStream(w, r, stream, httpbind.Frames{
		Update: func(u *a2apb.StreamResponse) ([]byte, error) { return a2ajson.Marshal(u) },
		Error: func(err error) ([]byte, error) {
			return failure.Report(r.Context(), h.cfg.Logger, "stream", err).MarshalREST()
		},
	}, h.cfg.Limits)
}

// allowed lists the methods of a path that exists.
func allowed(path string) string {
	last := path[strings.LastIndexByte(path, '/')+1:]
	switch {
	case strings.HasSuffix(last, ":subscribe"), last == "pushNotificationConfigs":
		return "GET, POST"
	case strings.Contains(path, "/pushNotificationConfigs/"):
		return "GET, DELETE"
	case strings.ContainsRune(last, ':'):
		return "POST"
	}
	return "GET"
}
