package sse

// MediaType is the Content-Type of an event stream.
const MediaType = "text/event-stream"

// Event is one server-sent event.
type Event struct {
	// ID is what a client names in Last-Event-ID. A writer leaves it out when it
	// is empty; a reader gives every event the last id that was sent.
	ID string
	// Name is the event's type; empty stands for "message".
	Name string
	Data []byte
}
