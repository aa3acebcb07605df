package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"github.com/errandhq/errand/pkg/sse"
)

// resync is how Errand names a task that stands for events it can't give any more.
const resync = "resync"

var errSilent = errors.New("the stream was silent for too long")

// sseStream is an event stream over HTTP.
type sseStream struct {
	reader *sse.Reader
	decode func(sse.Event) (*a2apb.StreamResponse, error)
	stop   func()
}

// openSSE sends a request that should be answered by an event stream. A server
// that answers otherwise gives one answer, which is an error or the only event.
func (h httpCaller) openSSE(ctx context.Context, r httpRequest) (*sseStream, *answer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	r.accept = sse.MediaType
	response, err := h.do(ctx, r) //nolint:bodyclose // read closes it, or the stream's stop
	if err != nil {
		cancel(nil)
		return nil, nil, err
	}
	if response.StatusCode != http.StatusOK || mediaType(response.Header) != sse.MediaType {
		defer cancel(nil)
		a, err := h.read(response)
		return nil, a, err
	}
	body := &idleReader{
		r: response.Body, idle: h.opts.Idle,
		timer: time.AfterFunc(h.opts.Idle, func() { cancel(errSilent) }),
	}
	return &sseStream{
		reader: sse.NewReader(body, h.opts.MaxEvent),
		stop: func() {
			body.timer.Stop()
			cancel(nil)
			response.Body.Close()
		},
	}, nil, nil
}

func (s *sseStream) next() (event, error) {
	e, err := s.reader.Next()
	switch {
	case err == nil:
		response, err := s.decode(e)
		return event{id: e.ID, response: response, resync: e.Name == resync}, err
	case errors.Is(err, io.EOF):
		return event{}, io.EOF
	case errors.Is(err, sse.ErrTooLarge):
		return event{}, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return event{}, lost(err)
}

func (s *sseStream) close() { s.stop() }

// idleReader puts off a timer with every read.
type idleReader struct {
	r     io.Reader
	idle  time.Duration
	timer *time.Timer
}

func (r *idleReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.timer.Reset(r.idle)
	return n, err
}

// single is a stream of one event, for servers that answer with plain JSON.
type single struct{ response *a2apb.StreamResponse }

func (s *single) next() (event, error) {
	if s.response == nil {
		return event{}, io.EOF
	}
	e := event{response: s.response}
	s.response = nil
	return e, nil
}

func (s *single) close() {}
