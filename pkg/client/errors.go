package client

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/pkg/a2aerr"
)

var (
	// ErrConnection says that the request or its answer was lost on the way; the
	// server may have done what was asked.
	ErrConnection = errors.New("the connection to the agent failed")
	// ErrProtocol says that the server answered with something that A2A does not
	// allow.
	ErrProtocol = errors.New("the agent's answer breaks the protocol")
)

// Error is a failure as the server tells it. With errors.Is it matches the
// sentinel of its reason.
type Error struct {
	// Reason is the ErrorInfo's (A2A §9.5, §10.6, §11.6), or the one that the
	// code of the binding stands for; empty if neither is known.
	Reason  string
	Message string
	// Details are those of a type that this program knows.
	Details []proto.Message
	// RetryAfter is how long the server wants a retry to wait; 0 if it says
	// nothing.
	RetryAfter time.Duration
}

func (e *Error) Error() string {
	if e.Reason == "" {
		return e.Message
	}
	return fmt.Sprintf("%s (%s)", e.Message, e.Reason)
}

// Is matches the sentinels below.
func (e *Error) Is(target error) bool {
	r, ok := target.(reason)
	return ok && string(r) == e.Reason
}

// The errors of A2A §5.4, and those that any server may answer with.
var (
	ErrTaskNotFound             error = reason(a2aerr.ReasonTaskNotFound)
	ErrTaskNotCancelable        error = reason(a2aerr.ReasonTaskNotCancelable)
	ErrPushNotSupported         error = reason(a2aerr.ReasonPushNotificationNotSupported)
	ErrUnsupportedOperation     error = reason(a2aerr.ReasonUnsupportedOperation)
	ErrContentTypeNotSupported  error = reason(a2aerr.ReasonContentTypeNotSupported)
	ErrInvalidAgentResponse     error = reason(a2aerr.ReasonInvalidAgentResponse)
	ErrExtendedCardNotSet       error = reason(a2aerr.ReasonExtendedAgentCardNotConfigured)
	ErrExtensionSupportRequired error = reason(a2aerr.ReasonExtensionSupportRequired)
	ErrVersionNotSupported      error = reason(a2aerr.ReasonVersionNotSupported)
	ErrInvalidParams            error = reason(a2aerr.ReasonInvalidParams)
	ErrTooLarge                 error = reason(a2aerr.ReasonTooLarge)
	ErrUnauthenticated          error = reason(a2aerr.ReasonUnauthenticated)
	ErrUnauthorized             error = reason(a2aerr.ReasonUnauthorized)
	ErrUnavailable              error = reason(a2aerr.ReasonUnavailable)
)

type reason string

func (r reason) Error() string { return string(r) }

func lost(err error) error { return fmt.Errorf("%w: %w", ErrConnection, err) }

// asError returns the server's error in err's chain, or nil.
func asError(err error) *Error {
	e, _ := errors.AsType[*Error](err)
	return e
}

// worthRetry reports whether the same request may succeed later.
func worthRetry(err error) bool {
	if e := asError(err); e != nil {
		return e.Reason == a2aerr.ReasonUnavailable || e.RetryAfter > 0
	}
	return errors.Is(err, ErrConnection)
}
