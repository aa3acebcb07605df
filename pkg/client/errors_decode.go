package client

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/errandhq/errand/pkg/a2aerr"
)

// reasons by JSON-RPC code and by gRPC code, for servers that send no ErrorInfo.
var (
	rpcReasons = map[int]string{
		-32001: a2aerr.ReasonTaskNotFound,
		-32002: a2aerr.ReasonTaskNotCancelable,
		-32003: a2aerr.ReasonPushNotificationNotSupported,
		-32004: a2aerr.ReasonUnsupportedOperation,
		-32005: a2aerr.ReasonContentTypeNotSupported,
		-32006: a2aerr.ReasonInvalidAgentResponse,
		-32007: a2aerr.ReasonExtendedAgentCardNotConfigured,
		-32008: a2aerr.ReasonExtensionSupportRequired,
		-32009: a2aerr.ReasonVersionNotSupported,
		-32700: a2aerr.ReasonParseError,
		-32600: a2aerr.ReasonInvalidRequest,
		-32601: a2aerr.ReasonMethodNotFound,
		-32602: a2aerr.ReasonInvalidParams,
		-32603: a2aerr.ReasonInternalError,
	}
	codeReasons = map[codes.Code]string{
		codes.InvalidArgument:  a2aerr.ReasonInvalidParams,
		codes.Unimplemented:    a2aerr.ReasonMethodNotFound,
		codes.Unauthenticated:  a2aerr.ReasonUnauthenticated,
		codes.PermissionDenied: a2aerr.ReasonUnauthorized,
		codes.Internal:         a2aerr.ReasonInternalError,
	}
	httpReasons = map[int]string{
		http.StatusUnauthorized:          a2aerr.ReasonUnauthenticated,
		http.StatusForbidden:             a2aerr.ReasonUnauthorized,
		http.StatusNotFound:              a2aerr.ReasonMethodNotFound,
		http.StatusMethodNotAllowed:      a2aerr.ReasonMethodNotFound,
		http.StatusRequestEntityTooLarge: a2aerr.ReasonTooLarge,
		http.StatusTooManyRequests:       a2aerr.ReasonUnavailable,
		http.StatusBadGateway:            a2aerr.ReasonUnavailable,
		http.StatusServiceUnavailable:    a2aerr.ReasonUnavailable,
		http.StatusGatewayTimeout:        a2aerr.ReasonUnavailable,
	}
)

// typed returns the error of a JSON-RPC response.
func (e *rpcError) typed() error {
	typed := &Error{Reason: rpcReasons[e.Code], Message: e.Message}
	typed.addJSON(e.Data)
	return typed
}

// fromREST returns the error in the body of an HTTP+JSON response (A2A §11.6).
func fromREST(body []byte) *Error {
	var wrapped struct {
		Error struct {
			Message string          `json:"message"`
			Details json.RawMessage `json:"details"`
		} `json:"error"`
	}
	e := &Error{Message: "the agent gave no reason"}
	if json.Unmarshal(body, &wrapped) == nil && wrapped.Error.Message != "" {
		e.Message = wrapped.Error.Message
		e.addJSON(wrapped.Error.Details)
	}
	return e
}

// fromHTTP returns the error of a response whose status is no success.
func fromHTTP(a *answer) error {
	e := fromREST(a.body)
	if e.Reason == "" {
		e.Reason = httpReasons[a.status]
		e.Message = "HTTP status " + strconv.Itoa(a.status) + ": " + e.Message
	}
	if seconds, err := strconv.Atoi(a.header.Get("Retry-After")); err == nil && seconds > 0 {
		e.RetryAfter = max(e.RetryAfter, time.Duration(seconds)*time.Second)
	}
	return e
}

// fromStatus returns the error of a gRPC call, nil for nil.
func fromStatus(err error) error {
	if err == nil {
		return nil
	}
	s, _ := status.FromError(err)
	e := &Error{Message: s.Message()}
	for _, detail := range s.Details() {
		if m, ok := detail.(proto.Message); ok {
			e.add(m)
		}
	}
	switch {
	case e.Reason != "":
	case s.Code() == codes.Unavailable:
		// The server's own refusals carry an ErrorInfo; this is gRPC's word that
		// the connection failed.
		return lost(err)
	case s.Code() == codes.Canceled, s.Code() == codes.DeadlineExceeded:
		return lost(err)
	default:
		e.Reason = codeReasons[s.Code()]
		e.Message = strings.ToLower(s.Code().String()) + ": " + e.Message
	}
	return e
}

// addJSON adds details that are an array of typed objects; anything else that
// a server may put there is passed over.
func (e *Error) addJSON(details json.RawMessage) {
	var list []json.RawMessage
	if json.Unmarshal(details, &list) != nil {
		return
	}
	for _, text := range list {
		packed := &anypb.Any{}
		if (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, packed) != nil {
			continue
		}
		if m, err := packed.UnmarshalNew(); err == nil {
			e.add(m)
		}
	}
}

func (e *Error) add(detail proto.Message) {
	e.Details = append(e.Details, detail)
	switch d := detail.(type) {
	case *errdetails.ErrorInfo:
		if d.GetDomain() == a2aerr.Domain {
			e.Reason = d.GetReason()
		}
	case *errdetails.RetryInfo:
		e.RetryAfter = d.GetRetryDelay().AsDuration()
	}
}
