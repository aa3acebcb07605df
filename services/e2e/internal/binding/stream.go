package binding

import (
	"context"
	"net/http"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
)

// Event is one item of a stream.
type Event struct {
	*a2apb.StreamResponse
	// ID is the id line of a server-sent event; empty on gRPC.
	ID string
	// Name is the event line of a server-sent event; empty on gRPC.
	Name string
	// JSON is the StreamResponse as it was sent; nil on gRPC.
	JSON []byte
}

// Stream is an open stream. Next is for one goroutine.
type Stream struct {
	// Header has what came as HTTP headers or gRPC header metadata.
	Header http.Header

	next     func() (Event, error)
	comments func() int64
	cancel   context.CancelFunc
}

// Next waits for the next event. A clean end is io.EOF; an error that the server
// sent as the last event is an *Error.
func (s *Stream) Next() (Event, error) { return s.next() }

// Comments counts the keep-alive comments so far; 0 on gRPC.
func (s *Stream) Comments() int64 {
	if s.comments == nil {
		return 0
	}
	return s.comments()
}

// Close cuts the connection of the stream.
func (s *Stream) Close() { s.cancel() }

// Error makes a refusal in the middle of a stream an error.
func (e *Error) Error() string { return "refused: " + e.Reason() + ": " + e.Message }
