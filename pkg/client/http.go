package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/pkg/a2ajson"
)

const mediaJSON = "application/json"

// jsonLimits are far above what a server should send; they keep hostile answers
// from costing more than their size.
var jsonLimits = a2ajson.Limits{Depth: 1000, Values: 10_000_000}

// httpCaller is what the two HTTP bindings share.
type httpCaller struct{ opts Options }

type httpRequest struct {
	method, url string
	accept      string
	body        []byte
	lastEventID string
}

// answer is a whole HTTP response.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a *answer) success() bool { return a.status/100 == 2 }

func (h httpCaller) exchange(ctx context.Context, r httpRequest) (*answer, error) {
	response, err := h.do(ctx, r)
	if err != nil {
		return nil, err
	}
	return h.read(response)
}

// do sends a request. The caller closes the response's body.
func (h httpCaller) do(ctx context.Context, r httpRequest) (*http.Response, error) {
	var body io.Reader
	if r.body != nil {
		body = bytes.NewReader(r.body)
	}
	request, err := http.NewRequestWithContext(ctx, r.method, r.url, body)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	h.setHeader(request.Header, r)
	response, err := h.opts.HTTPClient.Do(request)
	if err != nil {
		return nil, lost(err)
	}
	return response, nil
}

func (h httpCaller) setHeader(header http.Header, r httpRequest) {
	for name, values := range h.opts.Header {
		header[http.CanonicalHeaderKey(name)] = values
	}
	header.Set(versionParameter, protocolVersion)
	header.Set("Accept", r.accept)
	if len(h.opts.Extensions) > 0 {
		header.Set(extensionsParameter, strings.Join(h.opts.Extensions, ","))
	}
	if r.body != nil {
		header.Set("Content-Type", mediaJSON)
	}
	if r.lastEventID != "" {
		header.Set("Last-Event-ID", r.lastEventID)
	}
}

// read reads and closes a body of bounded size.
func (h httpCaller) read(response *http.Response) (*answer, error) {
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, int64(h.opts.MaxResponse)+1))
	switch {
	case err != nil:
		return nil, lost(fmt.Errorf("read response: %w", err))
	case len(body) > h.opts.MaxResponse:
		return nil, fmt.Errorf("%w: response of more than %d bytes", ErrProtocol, h.opts.MaxResponse)
	}
	return &answer{status: response.StatusCode, header: response.Header, body: body}, nil
}

func mediaType(header http.Header) string {
	name, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return name
}

func decode(data []byte, m proto.Message) error {
	if err := a2ajson.Unmarshal(data, m, jsonLimits); err != nil {
		// The text alone: to a caller this is no error of its own request.
		return fmt.Errorf("%w: %s", ErrProtocol, err.Error())
	}
	return nil
}
