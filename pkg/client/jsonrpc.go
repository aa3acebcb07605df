package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/pkg/a2ajson"
	"github.com/errandhq/errand/pkg/sse"
)

// jsonRPC speaks A2A §9.
type jsonRPC struct {
	httpCaller

	url    string
	lastID atomic.Int64
}

func newJSONRPC(url string, opts Options) *jsonRPC {
	return &jsonRPC{httpCaller: httpCaller{opts}, url: url}
}

type rpcRequest struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      string          `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

type rpcResponse struct {
	Result json.RawMessage `json:"result"`
	Error  *rpcError       `json:"error"`
}

type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

func (t *jsonRPC) call(ctx context.Context, op operation, request, response proto.Message) error {
	r, err := t.request(op, request)
	if err != nil {
		return err
	}
	a, err := t.exchange(ctx, r)
	if err != nil {
		return err
	}
	return t.result(a, response)
}

func (t *jsonRPC) open(ctx context.Context, op operation, request proto.Message, lastEventID string) (stream, error) {
	r, err := t.request(op, request)
	if err != nil {
		return nil, err
	}
	r.lastEventID = lastEventID
	s, a, err := t.openSSE(ctx, r)
	if err != nil {
		return nil, err
	}
	if a != nil {
		response := &a2apb.StreamResponse{}
		return &single{response}, t.result(a, response)
	}
	s.decode = func(e sse.Event) (*a2apb.StreamResponse, error) {
		response := &a2apb.StreamResponse{}
		return response, decodeRPC(e.Data, response)
	}
	return s, nil
}

func (t *jsonRPC) close() error { return nil }

func (t *jsonRPC) request(op operation, request proto.Message) (httpRequest, error) {
	params, err := a2ajson.Marshal(request)
	if err != nil {
		return httpRequest{}, err
	}
	body, err := json.Marshal(rpcRequest{"2.0", strconv.FormatInt(t.lastID.Add(1), 10), op.method, params})
	if err != nil {
		return httpRequest{}, fmt.Errorf("encode JSON-RPC request: %w", err)
	}
	return httpRequest{method: http.MethodPost, url: t.url, accept: mediaJSON, body: body}, nil
}

// result reads the response; a server may answer errors with any HTTP status.
func (t *jsonRPC) result(a *answer, response proto.Message) error {
	err := decodeRPC(a.body, response)
	if !a.success() && asError(err) == nil {
		return fromHTTP(a)
	}
	return err
}

func decodeRPC(body []byte, response proto.Message) error {
	var envelope rpcResponse
	if err := json.Unmarshal(body, &envelope); err != nil {
		return fmt.Errorf("%w: not a JSON-RPC response: %w", ErrProtocol, err)
	}
	switch {
	case envelope.Error != nil:
		return envelope.Error.typed()
	case envelope.Result == nil:
		return fmt.Errorf("%w: JSON-RPC response without result and error", ErrProtocol)
	}
	return decode(envelope.Result, response)
}
