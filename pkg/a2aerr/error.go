package a2aerr

import (
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// Error is the public form of a failure. Message and Details are safe to show
// to a sender.
type Error struct {
	// Reason is the row of the table, one of the Reason constants.
	Reason      string
	Code        codes.Code
	HTTPStatus  int
	JSONRPCCode int
	Message     string
	// Details holds an ErrorInfo first, then what the kind adds: a BadRequest
	// for invalid input, a RetryInfo for what is worth a retry.
	Details []proto.Message

	id    string
	cause error
}

// Error returns the message that a sender sees.
func (e *Error) Error() string { return e.Message }

// Unwrap returns what lies behind an internal error; senders never see it.
func (e *Error) Unwrap() error { return e.cause }

// ID names an internal error in the sender's message and in the log line; empty
// for all other errors.
func (e *Error) ID() string { return e.id }

// GRPCStatus makes Error a gRPC status error.
func (e *Error) GRPCStatus() *status.Status { return e.StatusFor(ProfileCurrent) }

// Profile says which edition of A2A 1.0 fixes the gRPC codes.
type Profile string

const (
	// ProfileCurrent is A2A 1.0.1 and later.
	ProfileCurrent Profile = ""
	// Profile100 is A2A 1.0.0, which answers UNIMPLEMENTED for operations,
	// versions and push notifications that the agent does not support.
	Profile100 Profile = "1.0.0"
)

// StatusFor returns the gRPC status with the code that the profile asks for.
func (e *Error) StatusFor(profile Profile) *status.Status {
	code := e.Code
	if profile == Profile100 {
		switch e.Reason {
		case ReasonVersionNotSupported, ReasonUnsupportedOperation, ReasonPushNotificationNotSupported:
			code = codes.Unimplemented
		}
	}
	return status.FromProto(&spb.Status{Code: int32(code), Message: e.Message, Details: e.packed()})
}

// RetryAfter returns how long a sender should wait before a retry; 0 if the
// error says nothing about it.
func (e *Error) RetryAfter() time.Duration {
	for _, d := range e.Details {
		if retry, ok := d.(*errdetails.RetryInfo); ok {
			return retry.GetRetryDelay().AsDuration()
		}
	}
	return 0
}

// packed leaves out what cannot be packed: a detail never costs the error.
func (e *Error) packed() []*anypb.Any {
	details := make([]*anypb.Any, 0, len(e.Details))
	for _, d := range e.Details {
		if packed, err := anypb.New(d); err == nil {
			details = append(details, packed)
		}
	}
	return details
}

// newError makes an error of a kind. Metadata are pairs of key and value for
// the ErrorInfo; pairs with an empty value are left out. Texts may quote what a
// sender sent in a header or path; protobuf refuses strings that aren't UTF-8.
func newError(reason, message string, metadata ...string) *Error {
	row := table[reason]
	info := &errdetails.ErrorInfo{Reason: reason, Domain: Domain}
	for i := 0; i+1 < len(metadata); i += 2 {
		if metadata[i+1] == "" {
			continue
		}
		if info.Metadata == nil {
			info.Metadata = map[string]string{}
		}
		info.Metadata[metadata[i]] = strings.ToValidUTF8(metadata[i+1], "\uFFFD")
	}
	return &Error{
		Reason:      reason,
		Code:        row.code,
		HTTPStatus:  row.http,
		JSONRPCCode: row.jsonrpc,
		Message:     strings.ToValidUTF8(message, "\uFFFD"),
		Details:     []proto.Message{info},
	}
}

func (e *Error) with(details ...proto.Message) *Error {
	e.Details = append(e.Details, details...)
	return e
}
