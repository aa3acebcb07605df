package binding

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"sync/atomic"
)

// frame is one server-sent event.
type frame struct {
	id, event string
	data      []byte
}

// frames reads server-sent events as strictly as the most line-based client:
// one data line per event, nothing but id, event, data and comments.
type frames struct {
	lines    *bufio.Reader
	comments atomic.Int64
}

// next reads one event; io.EOF at a clean end of the body.
func (f *frames) next() (frame, error) {
	var got frame
	begun := false
	for {
		line, err := f.lines.ReadBytes('\n')
		if err == io.EOF && (begun || len(line) > 0) {
			return frame{}, fmt.Errorf("the body ends within an event: %w", io.ErrUnexpectedEOF)
		}
		if err != nil {
			return frame{}, err //nolint:wrapcheck // io.EOF is a value of its own
		}
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		switch {
		case len(line) > 0 && line[0] == ':':
			f.comments.Add(1)
		case len(line) > 0:
			begun = true
			if err := got.take(line); err != nil {
				return frame{}, err
			}
		case begun:
			return got, got.complete()
		}
	}
}

func (f *frame) take(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "id":
		f.id = string(value)
	case "event":
		f.event = string(value)
	case "data":
		if f.data != nil {
			return fmt.Errorf("a second data line in one event: %.200q", line)
		}
		f.data = value
	default:
		return fmt.Errorf("line %.200q is no part of a server-sent event", line)
	}
	return nil
}

func (f *frame) complete() error {
	if f.data == nil {
		return fmt.Errorf("event %q without data", f.id)
	}
	return nil
}
