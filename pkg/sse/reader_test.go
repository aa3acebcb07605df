package sse_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/sse"
)

func readAll(r io.Reader, maxEvent int) ([]sse.Event, error) {
	reader := sse.NewReader(r, maxEvent)
	var events []sse.Event
	for {
		e, err := reader.Next()
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
}

func event(id, name, data string) sse.Event {
	return sse.Event{ID: id, Name: name, Data: []byte(data)}
}

func TestReaderFollowsTheStandard(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, stream string
		events       []sse.Event
		err          error
	}{
		{"nothing", "", nil, io.EOF},
		{"one", "data: a\n\n", []sse.Event{event("", "", "a")}, io.EOF},
		{"all fields", "id: 7\nevent: error\ndata: {}\n\n", []sse.Event{event("7", "error", "{}")}, io.EOF},
		{"no space after the colon", "data:a\ndata:  b\n\n", []sse.Event{event("", "", "a\n b")}, io.EOF},
		{"line ends", "data: a\r\rdata: b\r\n\r\ndata: c\n\n", []sse.Event{event("", "", "a"), event("", "", "b"), event("", "", "c")}, io.EOF},
		{"CR LF inside an event", "id: 1\r\ndata: a\r\n\r\n", []sse.Event{event("1", "", "a")}, io.EOF},
		{"comments", ": keep-alive\n\n:x\ndata: a\n: y\n\n", []sse.Event{event("", "", "a")}, io.EOF},
		{"the last id stays", "id: 1\n\ndata: a\n\nid: 2\ndata: b\n\nid\ndata: c\n\n", []sse.Event{event("1", "", "a"), event("2", "", "b"), event("", "", "c")}, io.EOF},
		{"id with NUL is ignored", "id: 1\x00\ndata: a\n\n", []sse.Event{event("", "", "a")}, io.EOF},
		{"a name without data is forgotten", "event: x\n\ndata: a\n\n", []sse.Event{event("", "", "a")}, io.EOF},
		{"empty data", "data\n\n", []sse.Event{event("", "", "")}, io.EOF},
		{"unknown fields", "retry: 5\nfoo: bar\ndata: a\n\n", []sse.Event{event("", "", "a")}, io.EOF},
		{"byte order mark", "\ufeffdata: a\n\n", []sse.Event{event("", "", "a")}, io.EOF},
		{"cut after data", "data: a\n\ndata: b\n", []sse.Event{event("", "", "a")}, io.ErrUnexpectedEOF},
		{"cut inside a line", "data: a\n\ndat", []sse.Event{event("", "", "a")}, io.ErrUnexpectedEOF},
		{"ended after a comment", ": a\n", nil, io.EOF},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for name, source := range map[string]io.Reader{
				"at once":     strings.NewReader(tc.stream),
				"one by one":  iotest.OneByteReader(strings.NewReader(tc.stream)),
				"data, error": iotest.DataErrReader(strings.NewReader(tc.stream)),
			} {
				events, err := readAll(source, 1000)
				require.ErrorIs(t, err, tc.err, name)
				require.Equal(t, tc.events, events, name)
			}
		})
	}
}

func TestAnEventThatEndsInCRNeedsNoFurtherByte(t *testing.T) {
	t.Parallel()
	pr, pw := io.Pipe()
	defer pw.Close()
	go pw.Write([]byte("data: a\r\r"))
	e, err := sse.NewReader(pr, 100).Next()
	require.NoError(t, err)
	require.Equal(t, "a", string(e.Data))
}

func TestEventsUpToTheLimitAreReadWhole(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 9_000_000)
	events, err := readAll(strings.NewReader("data: "+big+"\n\ndata: b\n\n"), sse.DefaultMaxEvent)
	require.ErrorIs(t, err, io.EOF)
	require.Len(t, events, 2)
	require.Equal(t, big, string(events[0].Data))

	_, err = readAll(strings.NewReader("data: "+big+"\n\n"), 1<<20)
	require.ErrorIs(t, err, sse.ErrTooLarge)
	_, err = readAll(strings.NewReader(strings.Repeat("data: xxxxxx\n", 1000)), 1000)
	require.ErrorIs(t, err, sse.ErrTooLarge, "many lines are one event")
	events, err = readAll(strings.NewReader(strings.Repeat(": keep-alive\n\n", 1000)+"data: a\n\n"), 100)
	require.ErrorIs(t, err, io.EOF, "comments between events do not count")
	require.Len(t, events, 1)
}

func TestAFailedReadIsToldApartFromTheEnd(t *testing.T) {
	t.Parallel()
	broken := errors.New("connection reset")
	events, err := readAll(io.MultiReader(strings.NewReader("data: a\n\n"), iotest.ErrReader(broken)), 100)
	require.ErrorIs(t, err, broken)
	require.Len(t, events, 1)
}

func FuzzReader(f *testing.F) {
	for _, seed := range []string{"data: a\n\n", "id: 1\r\ndata:b\r\r\n", "\ufeff:x\n\nevent: e\ndata\n\n", "\r\n\r", "data: \x00\n\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		const limit = 64
		events, err := readAll(strings.NewReader(string(stream)), limit)
		again, errAgain := readAll(iotest.OneByteReader(strings.NewReader(string(stream))), limit)
		require.Equal(t, err == nil, errAgain == nil)
		if !errors.Is(err, sse.ErrTooLarge) && !errors.Is(errAgain, sse.ErrTooLarge) {
			require.Equal(t, events, again, "how bytes arrive does not matter")
		}
		for _, e := range events {
			require.LessOrEqual(t, len(e.Data), limit)
			require.NotContains(t, e.Name, "\n")
		}
	})
}
