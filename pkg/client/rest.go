package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/pkg/a2ajson"
	"github.com/errandhq/errand/pkg/sse"
)

// rest speaks A2A §11.
type rest struct {
	httpCaller

	base string
}

func newREST(address string, opts Options) (*rest, error) {
	if _, err := url.Parse(address); err != nil {
		return nil, fmt.Errorf("interface URL: %w", err)
	}
	base := strings.TrimSuffix(address, "/")
	if opts.Tenant != "" {
		base += "/" + escape(opts.Tenant)
	}
	return &rest{httpCaller: httpCaller{opts}, base: base}, nil
}

func (t *rest) call(ctx context.Context, op operation, request, response proto.Message) error {
	r, err := t.request(op, request)
	if err != nil {
		return err
	}
	a, err := t.exchange(ctx, r)
	if err != nil {
		return err
	}
	return restResult(a, response)
}

func (t *rest) open(ctx context.Context, op operation, request proto.Message, lastEventID string) (stream, error) {
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
		return &single{response}, restResult(a, response)
	}
	s.decode = decodeREST
	return s, nil
}

func (t *rest) close() error { return nil }

func (t *rest) request(op operation, request proto.Message) (httpRequest, error) {
	r := httpRequest{method: op.verb, url: t.base + op.path(request), accept: mediaJSON}
	text, err := a2ajson.Marshal(request)
	if err != nil {
		return r, err
	}
	if op.body {
		r.body = text
		return r, nil
	}
	query, err := toQuery(text)
	if query != "" {
		r.url += "?" + query
	}
	return r, err
}

// toQuery makes a query string of a flat JSON object (A2A §11.5). The id and
// the tenant are in the path.
func toQuery(object []byte) (string, error) {
	dec := json.NewDecoder(bytes.NewReader(object))
	dec.UseNumber()
	fields := map[string]any{}
	if err := dec.Decode(&fields); err != nil {
		return "", fmt.Errorf("encode query: %w", err)
	}
	query := url.Values{}
	for name, value := range fields {
		if name != "id" && name != "tenant" {
			query.Set(name, fmt.Sprint(value))
		}
	}
	return query.Encode(), nil
}

func restResult(a *answer, response proto.Message) error {
	if !a.success() {
		return fromHTTP(a)
	}
	return decode(a.body, response)
}

func decodeREST(e sse.Event) (*a2apb.StreamResponse, error) {
	if e.Name == "error" || bytes.HasPrefix(e.Data, []byte(`{"error"`)) {
		return nil, fromREST(e.Data)
	}
	response := &a2apb.StreamResponse{}
	return response, decode(e.Data, response)
}
