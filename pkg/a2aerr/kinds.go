package a2aerr

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/durationpb"
)

// TaskNotFound is the answer for a task that is unknown, gone, or not visible
// to the sender; these must not be told apart (A2A §3.3.2).
func TaskNotFound(taskID string) error {
	return newError(ReasonTaskNotFound, "task not found", "taskId", taskID)
}

// TaskNotCancelable refuses to cancel a task that is terminal and not CANCELED.
func TaskNotCancelable(taskID string) error {
	return newError(ReasonTaskNotCancelable, "the task is already finished", "taskId", taskID)
}

// PushNotificationNotSupported refuses push configurations while the card does
// not declare them.
func PushNotificationNotSupported() error {
	return newError(ReasonPushNotificationNotSupported, "this agent does not send push notifications")
}

// UnsupportedOperation says in message why the operation is not possible.
func UnsupportedOperation(message string) error {
	return newError(ReasonUnsupportedOperation, message)
}

// ContentTypeNotSupported refuses a part whose media type the agent does not
// take. Field is the JSON path of the part.
func ContentTypeNotSupported(field, mediaType string, accepted []string) error {
	allowed := "must be one of: " + strings.Join(accepted, ", ")
	return newError(ReasonContentTypeNotSupported,
		fmt.Sprintf("%s: media type %q is not accepted", field, mediaType)).with(violation(field, allowed))
}

// InvalidAgentResponse says that the agent behind the server answered with
// something illegal. Message must be safe to show.
func InvalidAgentResponse(message string) error {
	return newError(ReasonInvalidAgentResponse, message)
}

// ExtendedAgentCardNotConfigured says that the extended card is declared and
// not there.
func ExtendedAgentCardNotConfigured() error {
	return newError(ReasonExtendedAgentCardNotConfigured, "this agent has no extended card")
}

// ExtensionSupportRequired names the extension that the card requires and the
// request does not list.
func ExtensionSupportRequired(uri string) error {
	return newError(ReasonExtensionSupportRequired,
		fmt.Sprintf("the agent requires extension %s: name it in A2A-Extensions", uri), "extension", uri)
}

// VersionNotSupported refuses a protocol version; an empty one stands for 0.3
// (A2A §3.6.2).
func VersionNotSupported(version, supported string) error {
	message := fmt.Sprintf("protocol version %q is not supported: use %s", version, supported)
	if version == "" {
		message = fmt.Sprintf("A2A-Version is missing, which stands for 0.3: use %s", supported)
	}
	return newError(ReasonVersionNotSupported, message, "supported", supported)
}

// ParseError refuses bytes that are not the JSON they should be.
func ParseError(message string) error { return newError(ReasonParseError, message) }

// InvalidRequest refuses JSON that is not a JSON-RPC 2.0 request.
func InvalidRequest(message string) error { return newError(ReasonInvalidRequest, message) }

// MethodNotFound refuses a JSON-RPC method or an HTTP path that does not exist.
func MethodNotFound(name string) error {
	return newError(ReasonMethodNotFound, fmt.Sprintf("%q does not exist", name))
}

// MethodNotAllowed refuses the HTTP method on a path that exists.
func MethodNotAllowed(method string) error {
	e := newError(ReasonMethodNotFound, fmt.Sprintf("method %q is not allowed here", method))
	e.HTTPStatus = http.StatusMethodNotAllowed
	return e
}

// MediaTypeNotSupported refuses the Content-Type of an HTTP request.
func MediaTypeNotSupported(mediaType, accepted string) error {
	e := newError(ReasonContentTypeNotSupported,
		fmt.Sprintf("content type %q is not accepted: use %s", mediaType, accepted))
	e.HTTPStatus = http.StatusUnsupportedMediaType
	return e
}

// Invalid refuses input. Field is its path in dotted JSON names
// ("message.parts[0]"), allowed says what the field may hold.
func Invalid(field, allowed string) error {
	return newError(ReasonInvalidParams, field+": "+allowed).with(violation(field, allowed))
}

// TooLarge refuses input over a limit, which allowed states ("at most 8 MiB").
func TooLarge(field, allowed string) error {
	return newError(ReasonTooLarge, field+": "+allowed).with(violation(field, allowed))
}

// Unavailable says that the request was not served and is worth a retry after
// the given time.
func Unavailable(message string, retry time.Duration) error {
	return newError(ReasonUnavailable, message).with(&errdetails.RetryInfo{RetryDelay: durationpb.New(retry)})
}

// Exhausted says that what the message asks for has no room left, at any server, and
// is worth a retry after the given time. A server that is itself too busy is
// [Unavailable].
func Exhausted(message string, retry time.Duration) error {
	return newError(ReasonExhausted, message).with(&errdetails.RetryInfo{RetryDelay: durationpb.New(retry)})
}

// Unauthenticated says that credentials are missing or bad.
func Unauthenticated(message string) error { return newError(ReasonUnauthenticated, message) }

// PermissionDenied says that the sender may not do this. For tasks use
// [TaskNotFound], which does not reveal that they exist.
func PermissionDenied(message string) error { return newError(ReasonUnauthorized, message) }

// Internal shows nothing but an id, which stands in the log line too.
func Internal(id string) error { return internal(id, nil) }

func internal(id string, cause error) *Error {
	e := newError(ReasonInternalError, "internal error "+id, "id", id)
	e.id, e.cause = id, cause
	return e
}

func violation(field, allowed string) *errdetails.BadRequest {
	return &errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{
		{Field: strings.ToValidUTF8(field, "\uFFFD"), Description: strings.ToValidUTF8(allowed, "\uFFFD")},
	}}
}
