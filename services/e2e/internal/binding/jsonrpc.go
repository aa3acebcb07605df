package binding

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/proto"
)

// requestID is the id of every request: a string that no server can have made.
const requestID = `"e2e-1"`

type jsonrpc struct {
	client *http.Client
	url    string
}

func (*jsonrpc) Name() string { return "jsonrpc" }

func (b *jsonrpc) Call(ctx context.Context, op Op, in proto.Message, options ...Option) (*Answer, error) {
	params, err := encode(in)
	if err != nil {
		return nil, err
	}
	return b.CallJSON(ctx, op, string(params), options...)
}

func (b *jsonrpc) CallJSON(ctx context.Context, op Op, params string, options ...Option) (*Answer, error) {
	c := newCall(options)
	setDefault(c.header, "Content-Type", "application/json")
	r, err := Do(ctx, b.client, http.MethodPost, b.url, c.header, envelope(op, params))
	if err != nil {
		return nil, err
	}
	return b.answer(op, r)
}

func envelope(op Op, params string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, requestID, op, params)
}

// answer reads a plain response, which must not be a stream.
func (b *jsonrpc) answer(op Op, r *Response) (*Answer, error) {
	if got := mediaType(r.Header); got != "application/json" {
		return nil, fmt.Errorf("JSON-RPC answers with %q: %.200q", got, r.Body)
	}
	result, failure, err := b.open(r.Body)
	if err != nil {
		return nil, err
	}
	answer := &Answer{Err: failure, JSON: result, Status: r.Status, Header: r.Header}
	if answer.Err == nil {
		if answer.Result, err = op.output(); err == nil {
			err = decode(result, answer.Result)
		}
	}
	return answer, err
}

// open takes a response out of its envelope.
func (*jsonrpc) open(raw []byte) (result json.RawMessage, failure *Error, err error) {
	var r struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  json.RawMessage `json:"result"`
		Error   json.RawMessage `json:"error"`
	}
	if err := strict(raw, &r); err != nil {
		return nil, nil, fmt.Errorf("JSON-RPC response %.300q: %w", raw, err)
	}
	if r.Error != nil {
		if failure, err = parseJSONRPC(r.Error); err != nil {
			return nil, nil, err
		}
	}
	mine := string(r.ID) == requestID || string(r.ID) == "null" && unread(failure)
	if r.Version != "2.0" || !mine || (r.Result == nil) == (r.Error == nil) {
		return nil, nil, fmt.Errorf("not a JSON-RPC response to %s: %.300q", requestID, raw)
	}
	return r.Result, failure, nil
}

// unread tells whether a request was refused before its id was known, by what
// is wrong with the body as a whole (JSON-RPC 2.0 §5).
func unread(failure *Error) bool {
	return failure != nil && (failure.JSONRPC == -32700 || slices.Equal(failure.Fields(), []string{"body"}))
}

func (b *jsonrpc) Open(ctx context.Context, op Op, in proto.Message, options ...Option) (*Stream, *Answer, error) {
	params, err := encode(in)
	if err != nil {
		return nil, nil, err
	}
	c := newCall(options)
	setDefault(c.header, "Content-Type", "application/json")
	return openHTTP(ctx, httpStream{
		request: func(ctx context.Context) (*http.Response, error) {
			return begin(ctx, b.client, http.MethodPost, b.url, c.header, envelope(op, string(params)))
		},
		answer: func(r *Response) (*Answer, error) { return b.answer(op, r) },
		event:  b.event,
	})
}

// event takes one event out of its envelope.
func (b *jsonrpc) event(f frame) (Event, error) {
	result, failure, err := b.open(f.data)
	if err != nil {
		return Event{}, err
	}
	if failure != nil {
		if f.event != "error" {
			return Event{}, errors.New("an error in a stream that is not marked as one")
		}
		return Event{}, failure
	}
	e := Event{StreamResponse: &a2apb.StreamResponse{}, ID: f.id, Name: f.event, JSON: result}
	return e, decode(result, e.StreamResponse)
}

func setDefault(h http.Header, name, value string) {
	if _, set := h[name]; !set {
		h.Set(name, value)
	}
}

// httpStream is what differs between the two bindings that stream over HTTP.
type httpStream struct {
	request func(ctx context.Context) (*http.Response, error)
	answer  func(*Response) (*Answer, error)
	event   func(frame) (Event, error)
}

func openHTTP(ctx context.Context, s httpStream) (*Stream, *Answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	r, err := s.request(ctx)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	if mediaType(r.Header) != "text/event-stream" {
		defer cancel()
		defer func() { _ = r.Body.Close() }()
		whole, err := finish(r)
		if err != nil {
			return nil, nil, err
		}
		answer, err := s.answer(whole)
		if err == nil && answer.Err == nil {
			err = fmt.Errorf("no stream but %.200q", whole.Body)
		}
		return nil, answer, err
	}
	reader := &frames{lines: bufio.NewReader(r.Body)}
	return &Stream{
		Header: r.Header,
		next: func() (Event, error) {
			f, err := reader.next()
			if err != nil {
				return Event{}, err
			}
			return s.event(f)
		},
		comments: reader.comments.Load,
		cancel: func() {
			cancel()
			_ = r.Body.Close()
		},
	}, nil, nil
}
