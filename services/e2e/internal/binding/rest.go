package binding

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/proto"
)

type rest struct {
	client *http.Client
	base   string
}

func (*rest) Name() string { return "rest" }

func (b *rest) Call(ctx context.Context, op Op, in proto.Message, options ...Option) (*Answer, error) {
	raw, err := encode(in)
	if err != nil {
		return nil, err
	}
	return b.CallJSON(ctx, op, string(raw), options...)
}

func (b *rest) CallJSON(ctx context.Context, op Op, params string, options ...Option) (*Answer, error) {
	r, err := b.begin(ctx, op, params, newCall(options))
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Body.Close() }()
	whole, err := finish(r)
	if err != nil {
		return nil, err
	}
	return b.answer(op, whole)
}

// begin puts the members of params where the operation's route wants them.
func (b *rest) begin(ctx context.Context, op Op, params string, c call) (*http.Response, error) {
	to := routes[op]
	path, query, err := place(to, params)
	if err != nil {
		return nil, err
	}
	var body []byte
	if to.body {
		setDefault(c.header, "Content-Type", "application/json")
		body, query = []byte(params), ""
	}
	return begin(ctx, b.client, to.method, b.base+path+query, c.header, body)
}

// holes are the members of a path.
var holes = regexp.MustCompile(`\{(\w+)\}`)

// place fills the path and makes a query of the members that are left.
func place(to route, params string) (path, query string, err error) {
	if to.body && !strings.Contains(to.path, "{") {
		return to.path, "", nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(params), &members); err != nil {
		return "", "", fmt.Errorf("read %s: %w", params, err)
	}
	path = to.path
	values := url.Values{}
	for _, hole := range holes.FindAllStringSubmatch(path, -1) {
		if _, given := members[hole[1]]; !given {
			path = strings.Replace(path, hole[0], "", 1)
		}
	}
	for name, raw := range members {
		text, err := plain(raw)
		if err != nil {
			return "", "", err
		}
		if hole := "{" + name + "}"; strings.Contains(path, hole) {
			path = strings.Replace(path, hole, url.PathEscape(text), 1)
		} else {
			values.Set(name, text)
		}
	}
	if len(values) > 0 {
		query = "?" + values.Encode()
	}
	return path, query, nil
}

// plain is a JSON value as it stands in a path or query.
func plain(raw json.RawMessage) (string, error) {
	if raw[0] != '"' {
		return string(raw), nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return "", fmt.Errorf("read %s: %w", raw, err)
	}
	return text, nil
}

func (*rest) answer(op Op, r *Response) (*Answer, error) {
	if got := mediaType(r.Header); got != "application/json" && got != "application/a2a+json" {
		return nil, fmt.Errorf("HTTP+JSON answers %d with %q: %.200q", r.Status, got, r.Body)
	}
	answer := &Answer{JSON: r.Body, Status: r.Status, Header: r.Header}
	var err error
	if r.Status != http.StatusOK {
		if answer.Err, err = parseREST(r.Body); err == nil && answer.Err.HTTP != r.Status {
			err = fmt.Errorf("the body says %d, the status %d", answer.Err.HTTP, r.Status)
		}
		return answer, err
	}
	if answer.Result, err = op.output(); err != nil {
		return nil, err
	}
	return answer, decode(r.Body, answer.Result)
}

func (b *rest) Open(ctx context.Context, op Op, in proto.Message, options ...Option) (*Stream, *Answer, error) {
	raw, err := encode(in)
	if err != nil {
		return nil, nil, err
	}
	return openHTTP(ctx, httpStream{
		request: func(ctx context.Context) (*http.Response, error) {
			return b.begin(ctx, op, string(raw), newCall(options))
		},
		answer: func(r *Response) (*Answer, error) { return b.answer(op, r) },
		event:  b.event,
	})
}

func (*rest) event(f frame) (Event, error) {
	if f.event == "error" {
		failure, err := parseREST(f.data)
		return Event{}, errors.Join(err, failure)
	}
	e := Event{StreamResponse: &a2apb.StreamResponse{}, ID: f.id, Name: f.event, JSON: f.data}
	return e, decode(f.data, e.StreamResponse)
}
