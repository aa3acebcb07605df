package a2aerr

import (
	"bytes"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
)

// MarshalREST returns the body of an HTTP+JSON response: a google.rpc.Status
// under "error" (A2A §11.6).
func (e *Error) MarshalREST() ([]byte, error) {
	details, err := e.details()
	if err != nil {
		return nil, err
	}
	type object struct {
		Code    int               `json:"code"`
		Status  string            `json:"status"`
		Message string            `json:"message"`
		Details []json.RawMessage `json:"details"`
	}
	return encode(struct {
		Error object `json:"error"`
	}{object{e.HTTPStatus, codeNames[e.Code], e.Message, details}})
}

// MarshalJSONRPC returns the error object of a JSON-RPC response (A2A §9.5).
func (e *Error) MarshalJSONRPC() ([]byte, error) {
	details, err := e.details()
	if err != nil {
		return nil, err
	}
	return encode(struct {
		Code    int               `json:"code"`
		Message string            `json:"message"`
		Data    []json.RawMessage `json:"data"`
	}{e.JSONRPCCode, e.Message, details})
}

func (e *Error) details() ([]json.RawMessage, error) {
	details := []json.RawMessage{}
	for _, packed := range e.packed() {
		text, err := protojson.Marshal(packed)
		if err != nil {
			return nil, fmt.Errorf("encode error detail: %w", err)
		}
		details = append(details, text)
	}
	return details, nil
}

// encode writes compact JSON: protojson's random spaces go, and messages keep
// characters such as < that encoding/json would escape for HTML.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode error: %w", err)
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}
