package binding

import (
	"encoding/json"
	"fmt"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// Error is a refusal as the binding told it. Of the three codes only the
// binding's own is set.
type Error struct {
	JSONRPC int
	HTTP    int
	GRPC    codes.Code
	// Name is the gRPC code as REST spells it.
	Name    string
	Message string
	Details []proto.Message
}

// Reason is that of the ErrorInfo; empty without one of A2A's domain.
func (e *Error) Reason() string { return e.Info().GetReason() }

// Info is the ErrorInfo of A2A's domain; nil if there is none.
func (e *Error) Info() *errdetails.ErrorInfo {
	for _, d := range e.Details {
		if info, ok := d.(*errdetails.ErrorInfo); ok && info.GetDomain() == "a2a-protocol.org" {
			return info
		}
	}
	return nil
}

// Fields are the paths that a BadRequest names.
func (e *Error) Fields() []string {
	var fields []string
	for _, d := range e.Details {
		if bad, ok := d.(*errdetails.BadRequest); ok {
			for _, v := range bad.GetFieldViolations() {
				fields = append(fields, v.GetField())
			}
		}
	}
	return fields
}

// Retry is the RetryInfo; nil if there is none.
func (e *Error) Retry() *errdetails.RetryInfo {
	for _, d := range e.Details {
		if retry, ok := d.(*errdetails.RetryInfo); ok {
			return retry
		}
	}
	return nil
}

// parseJSONRPC reads the error member of a JSON-RPC response.
func parseJSONRPC(raw []byte) (*Error, error) {
	var e struct {
		Code    *int              `json:"code"`
		Message *string           `json:"message"`
		Data    []json.RawMessage `json:"data"`
	}
	if err := strict(raw, &e); err != nil {
		return nil, fmt.Errorf("JSON-RPC error object %s: %w", raw, err)
	}
	if e.Code == nil || e.Message == nil {
		return nil, fmt.Errorf("JSON-RPC error object %s lacks code or message", raw)
	}
	details, err := parseDetails(e.Data)
	return &Error{JSONRPC: *e.Code, Message: *e.Message, Details: details}, err
}

// parseREST reads the body of an HTTP+JSON error (A2A §11.6, AIP-193).
func parseREST(body []byte) (*Error, error) {
	var b struct {
		Error *struct {
			Code    int               `json:"code"`
			Status  string            `json:"status"`
			Message string            `json:"message"`
			Details []json.RawMessage `json:"details"`
		} `json:"error"`
	}
	if err := strict(body, &b); err != nil {
		return nil, fmt.Errorf("HTTP+JSON error body %q: %w", body, err)
	}
	if b.Error == nil {
		return nil, fmt.Errorf("HTTP+JSON error body %q has no error member", body)
	}
	details, err := parseDetails(b.Error.Details)
	return &Error{HTTP: b.Error.Code, Name: b.Error.Status, Message: b.Error.Message, Details: details}, err
}

func parseGRPC(s *status.Status) *Error {
	e := &Error{GRPC: s.Code(), Message: s.Message()}
	for _, d := range s.Details() {
		if m, ok := d.(proto.Message); ok {
			e.Details = append(e.Details, m)
		}
	}
	return e
}

func parseDetails(raw []json.RawMessage) ([]proto.Message, error) {
	details := make([]proto.Message, 0, len(raw))
	for _, r := range raw {
		var wrapped anypb.Any
		if err := protojson.Unmarshal(r, &wrapped); err != nil {
			return nil, fmt.Errorf("error detail %s: %w", r, err)
		}
		d, err := wrapped.UnmarshalNew()
		if err != nil {
			return nil, fmt.Errorf("error detail %s: %w", r, err)
		}
		details = append(details, d)
	}
	return details, nil
}
