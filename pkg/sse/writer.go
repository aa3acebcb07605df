package sse

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// ErrLineBreak says that a field to be written holds a line break, which would
// end it.
var ErrLineBreak = errors.New("line break in a server-sent event")

// Writer writes events to one HTTP response. It is not safe for concurrent use.
type Writer struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	buf     bytes.Buffer
}

// Start answers with status 200 and the headers of an event stream. It takes
// the server's deadlines off the connection, since they are counted from the
// request; from now on each write has the timeout for itself. When that is not
// possible, Start fails before anything is written.
func Start(w http.ResponseWriter, timeout time.Duration) (*Writer, error) {
	s := &Writer{w: w, control: http.NewResponseController(w), timeout: timeout}
	if err := s.control.SetReadDeadline(time.Time{}); err != nil {
		return nil, fmt.Errorf("clear read deadline: %w", err)
	}
	if err := s.control.SetWriteDeadline(time.Time{}); err != nil {
		return nil, fmt.Errorf("clear write deadline: %w", err)
	}
	h := w.Header()
	h.Set("Content-Type", MediaType)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	return s, s.send()
}

// Event writes one event and flushes it. After an error the stream is broken.
func (s *Writer) Event(e Event) error {
	if strings.ContainsAny(e.ID+e.Name, "\r\n\x00") || bytes.ContainsAny(e.Data, "\r\n") {
		return ErrLineBreak
	}
	if e.ID != "" {
		s.field("id", e.ID)
	}
	if e.Name != "" {
		s.field("event", e.Name)
	}
	s.buf.WriteString("data: ")
	s.buf.Write(e.Data)
	s.buf.WriteString("\n\n")
	return s.send()
}

// Comment writes a line that clients skip.
func (s *Writer) Comment(text string) error {
	if strings.ContainsAny(text, "\r\n") {
		return ErrLineBreak
	}
	s.buf.WriteString(": " + text + "\n\n")
	return s.send()
}

func (s *Writer) field(name, value string) {
	s.buf.WriteString(name + ": " + value + "\n")
}

// send writes what is buffered within the timeout. The deadline is taken off
// again: on HTTP/2 one that passes resets the stream even if nothing is being
// written.
func (s *Writer) send() error {
	if err := s.control.SetWriteDeadline(time.Now().Add(s.timeout)); err != nil {
		return fmt.Errorf("set write deadline: %w", err)
	}
	_, err := s.w.Write(s.buf.Bytes())
	s.release()
	if err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	if err := s.control.Flush(); err != nil {
		return fmt.Errorf("flush event: %w", err)
	}
	if err := s.control.SetWriteDeadline(time.Time{}); err != nil {
		return fmt.Errorf("clear write deadline: %w", err)
	}
	return nil
}

// keptBuffer is what an idle stream may hold on to.
const keptBuffer = 16 << 10

// release empties the buffer; one that a big event has grown is let go.
func (s *Writer) release() {
	if s.buf.Cap() > keptBuffer {
		s.buf = bytes.Buffer{}
		return
	}
	s.buf.Reset()
}
