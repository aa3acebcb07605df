package jsonrpc

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/a2ajson"
	"github.com/errandhq/errand/pkg/config"
)

// request is a JSON-RPC 2.0 request object.
type request struct {
	// As it was written, since clients compare it with what they sent; "null"
	// while it is unknown.
	ID     json.RawMessage
	Method string
	// An object; "{}" if there were none.
	Params json.RawMessage
}

var null = json.RawMessage("null")

// parse reads a request. With an error it returns what is known of the request,
// so that the error can carry its id (JSON-RPC 2.0 §5.1).
func parse(body []byte, limits config.Limits) (request, error) {
	r := request{ID: null}
	if err := a2ajson.Check(body, a2ajson.Limits{Depth: limits.Depth, Values: limits.Values}); err != nil {
		return r, err
	}
	if !json.Valid(body) {
		return r, a2aerr.ParseError("the body is not valid JSON")
	}
	// A map, since a struct would take members in any spelling of case.
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return r, a2aerr.InvalidRequest("the body must be one request object; batches are not served")
	}
	id, err := parseID(members["id"], limits.ID)
	if err != nil {
		return r, err
	}
	r.ID = id
	if string(members["jsonrpc"]) != `"2.0"` {
		return r, a2aerr.InvalidRequest(`jsonrpc must be "2.0"`)
	}
	method := members["method"]
	if err := json.Unmarshal(method, &r.Method); err != nil || method[0] != '"' {
		return r, a2aerr.InvalidRequest("method must be a string")
	}
	r.Params, err = parseParams(members["params"])
	return r, err
}

// parseID bounds the id because every event of a stream repeats it. Nobody
// would see the answer to a request without one, which A2A has no use for.
func parseID(id json.RawMessage, limit int) (json.RawMessage, error) {
	switch {
	case len(id) == 0:
		return nil, a2aerr.InvalidRequest("id is required")
	case len(id) > limit:
		return nil, a2aerr.InvalidRequest("id is too long")
	case !utf8.Valid(id), id[0] == '{', id[0] == '[', id[0] == 't', id[0] == 'f':
		return nil, a2aerr.InvalidRequest("id must be a string or a number")
	}
	return id, nil
}

func parseParams(params json.RawMessage) (json.RawMessage, error) {
	if len(params) == 0 || bytes.Equal(params, null) {
		return json.RawMessage("{}"), nil
	}
	if params[0] != '{' {
		return nil, a2aerr.Invalid("params", "must be an object")
	}
	return params, nil
}
