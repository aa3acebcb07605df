package httpbind

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/errandhq/errand/pkg/a2aerr"
)

// ResponseTimeout is how long an ordinary response may take to be written.
const ResponseTimeout = 30 * time.Second

// Unhurried takes the server's deadlines off a request whose body has been read:
// they would count the time that the request waits for a task. Each response
// gets a deadline of its own, see Hurry.
func Unhurried(w http.ResponseWriter) error {
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("clear read deadline: %w", err)
	}
	if err := control.SetWriteDeadline(time.Time{}); err != nil {
		return fmt.Errorf("clear write deadline: %w", err)
	}
	return nil
}

// Hurry bounds the response that is about to be written.
func Hurry(w http.ResponseWriter) error {
	if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(ResponseTimeout)); err != nil {
		return fmt.Errorf("set write deadline: %w", err)
	}
	return nil
}

// Respond writes an ordinary response.
func Respond(w http.ResponseWriter, status int, mediaType string, body []byte) error {
	if err := Hurry(w); err != nil {
		return err
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if _, err := w.Write(body); err != nil {
		return fmt.Errorf("write response: %w", err)
	}
	return nil
}

// RespondError writes an error as google.rpc.Status in JSON (A2A §11.6).
func RespondError(w http.ResponseWriter, e *a2aerr.Error, mediaType string) error {
	body, err := e.MarshalREST()
	if err != nil {
		return fmt.Errorf("encode error: %w", err)
	}
	ErrorHeaders(w, e)
	return Respond(w, e.HTTPStatus, mediaType, body)
}

// ErrorHeaders sets the headers that belong to an error on any HTTP binding.
func ErrorHeaders(w http.ResponseWriter, e *a2aerr.Error) {
	if retry := e.RetryAfter(); retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(retry.Seconds()))))
	}
	if e.Code == codes.Unauthenticated {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
}
