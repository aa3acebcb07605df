package a2aerr

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// unavailableRetry is the pause for failures between services, which know
// nothing of when the other one is back.
const unavailableRetry = time.Second

// From returns the public form of an error, nil for nil. An *Error anywhere in
// the chain and a gRPC status with an ErrorInfo of [Domain] are taken as they
// are, whatever was wrapped around them. Context errors and unavailable services
// have a kind of their own; anything else is internal under a new id.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	if known := (*Error)(nil); errors.As(err, &known) {
		return known
	}
	// errors.As and not status.FromError: that one puts the text of all
	// wrappers into the message.
	var withStatus interface{ GRPCStatus() *status.Status }
	if errors.As(err, &withStatus) {
		return fromStatus(withStatus.GRPCStatus(), err)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return withCause(newError(ReasonCanceled, "the request was canceled"), err)
	case errors.Is(err, context.DeadlineExceeded):
		return withCause(newError(ReasonDeadlineExceeded, "the request took too long"), err)
	}
	return internal(newID(), err)
}

func fromStatus(s *status.Status, cause error) *Error {
	if known := fromDetails(s); known != nil {
		return known
	}
	switch s.Code() {
	case codes.Canceled:
		return withCause(newError(ReasonCanceled, "the request was canceled"), cause)
	case codes.DeadlineExceeded:
		return withCause(newError(ReasonDeadlineExceeded, "the request took too long"), cause)
	case codes.Unavailable:
		e := From(Unavailable("the service is temporarily unavailable", unavailableRetry))
		return withCause(e, cause)
	}
	return internal(newID(), cause)
}

// fromDetails rebuilds an error of the table from a status that carries its
// ErrorInfo; nil if it carries none.
func fromDetails(s *status.Status) *Error {
	var details []proto.Message
	for _, d := range s.Details() {
		if message, ok := d.(proto.Message); ok {
			details = append(details, message)
		}
	}
	var info *errdetails.ErrorInfo
	details = slices.DeleteFunc(details, func(d proto.Message) bool {
		found, ok := d.(*errdetails.ErrorInfo)
		if !ok || found.GetDomain() != Domain {
			return false
		}
		info = found
		return true
	})
	row, ok := table[info.GetReason()]
	if !ok {
		return nil
	}
	return &Error{
		Reason:      info.GetReason(),
		Code:        row.code,
		HTTPStatus:  row.http,
		JSONRPCCode: row.jsonrpc,
		Message:     s.Message(),
		Details:     append([]proto.Message{info}, details...),
		id:          info.GetMetadata()["id"],
	}
}

func withCause(e *Error, cause error) *Error {
	e.cause = cause
	return e
}

func newID() string { return rand.Text()[:12] }
