package launch

import (
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/errandhq/errand/pkg/a2aerr"
)

// refuseRetry is when a sender should come again; another gateway serves already.
const refuseRetry = time.Second

// refuse answers a request for which there is no answer of a gateway, as a gateway
// would: a sender needs to know no front.
func refuse(w http.ResponseWriter, r *http.Request, err error, logger *slog.Logger) {
	logger.DebugContext(r.Context(), "no gateway answered", "path", r.URL.Path, "error", err)
	why := a2aerr.From(a2aerr.Unavailable("no gateway answered; send again", refuseRetry))
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Grpc-Status", strconv.Itoa(int(why.Code)))
		w.Header().Set("Grpc-Message", why.Message)
		return
	}
	body, err := refusal(r.URL.Path, why)
	if err != nil {
		logger.ErrorContext(r.Context(), "encode that no gateway answered", "error", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Retry-After", strconv.Itoa(int(refuseRetry.Seconds())))
	w.WriteHeader(why.HTTPStatus)
	_, _ = w.Write(body)
}

// refusal is the body of the binding that the path belongs to. What id a JSON-RPC
// request had, the front doesn't know (JSON-RPC 2.0 §5: null).
func refusal(path string, why *a2aerr.Error) ([]byte, error) {
	if !strings.HasSuffix(path, "/rpc") {
		return why.MarshalREST()
	}
	object, err := why.MarshalJSONRPC()
	return append(append([]byte(`{"jsonrpc":"2.0","id":null,"error":`), object...), '}'), err
}
