package sse

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// DefaultMaxEvent is a limit for readers that have no own: four times what an
// A2A event may be.
const DefaultMaxEvent = 16 << 20

// ErrTooLarge says that an event is larger than the reader's limit.
var ErrTooLarge = errors.New("server-sent event is too large")

// Reader reads events from a response body. It is not safe for concurrent use.
type Reader struct {
	r     *bufio.Reader
	max   int
	left  int // bytes that the current event may still have
	begun bool
	// The line before ended in CR; a LF that follows belongs to it.
	afterCR bool
	line    []byte
	lastID  string
}

// NewReader reads from r events of at most maxEvent bytes, fields and comments
// before them included.
func NewReader(r io.Reader, maxEvent int) *Reader {
	return &Reader{r: bufio.NewReader(r), max: maxEvent}
}

// Next returns the next event that has data. The end of the stream is io.EOF,
// or io.ErrUnexpectedEOF when it cuts an event in two; that event is lost.
func (r *Reader) Next() (Event, error) {
	e := Event{}
	var data []byte
	hasData := false
	r.left = r.max
	for {
		line, err := r.readLine()
		if err != nil {
			return Event{}, r.ended(err, hasData || len(line) > 0)
		}
		if len(line) == 0 {
			if hasData {
				e.ID, e.Data = r.lastID, bytes.TrimSuffix(data, []byte("\n"))
				return e, nil
			}
			e = Event{}
			r.left = r.max
			continue
		}
		switch name, value := field(line); name {
		case "data":
			hasData = true
			data = append(append(data, value...), '\n')
		case "event":
			e.Name = string(value)
		case "id":
			if !bytes.ContainsRune(value, 0) {
				r.lastID = string(value)
			}
		}
	}
}

func (r *Reader) ended(err error, cut bool) error {
	switch {
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("read event: %w", err)
	case cut:
		return io.ErrUnexpectedEOF
	}
	return io.EOF
}

// field splits a line at its first colon; one space after it is no part of the
// value. Comments have the name "".
func field(line []byte) (string, []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	return string(name), bytes.TrimPrefix(value, []byte(" "))
}

// readLine returns a line without its end, which is LF, CR or CR LF. It never
// waits for the byte after a CR: an event counts as complete without it. The
// line is valid until the next call.
func (r *Reader) readLine() ([]byte, error) {
	r.line = r.line[:0]
	for {
		chunk, end, err := r.readChunk()
		if r.left -= len(chunk) + 1; r.left < 0 {
			return r.line, ErrTooLarge
		}
		r.line = append(r.line, chunk...)
		if err != nil || end {
			return r.stripMark(), err
		}
	}
}

// readChunk returns bytes of the current line from the buffer, and whether the
// line ends behind them.
func (r *Reader) readChunk() (chunk []byte, end bool, err error) {
	if _, err := r.r.Peek(1); err != nil {
		return nil, false, err //nolint:wrapcheck // io.EOF must stay itself
	}
	buffered, err := r.r.Peek(r.r.Buffered())
	if err != nil {
		return nil, false, err //nolint:wrapcheck // as above
	}
	if r.afterCR {
		r.afterCR = false
		if buffered[0] == '\n' {
			_, err := r.r.Discard(1)
			return nil, false, err //nolint:wrapcheck // as above
		}
	}
	at := bytes.IndexAny(buffered, "\r\n")
	if at < 0 {
		_, err := r.r.Discard(len(buffered))
		return buffered, false, err //nolint:wrapcheck // as above
	}
	r.afterCR = buffered[at] == '\r'
	_, err = r.r.Discard(at + 1)
	return buffered[:at], true, err //nolint:wrapcheck // as above
}

// stripMark takes the byte order mark off the stream's first line.
func (r *Reader) stripMark() []byte {
	if !r.begun {
		r.begun = true
		return bytes.TrimPrefix(r.line, []byte("\ufeff"))
	}
	return r.line
}
