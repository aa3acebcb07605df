package conformance_test

import (
	"errors"
	"io"
	"strconv"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/services/e2e/internal/binding"
)

// stream is an open stream of a test.
type stream struct {
	*binding.Stream
	c *caller
}

// open wants a stream.
func (c *caller) open(op binding.Op, in proto.Message, options ...binding.Option) *stream {
	c.t.Helper()
	s, answer, err := c.Open(within(c.t), op, in, options...)
	require.NoError(c.t, err)
	if s == nil {
		require.Fail(c.t, "no stream", "%s was refused: %v", op, answer.Err)
	}
	c.t.Cleanup(s.Close)
	return &stream{Stream: s, c: c}
}

// sendStream opens a stream of a message.
func (c *caller) sendStream(in *a2apb.SendMessageRequest, options ...binding.Option) *stream {
	c.t.Helper()
	return c.open(binding.SendStreamingMessage, in, options...)
}

func (c *caller) subscribe(id string, options ...binding.Option) *stream {
	c.t.Helper()
	return c.open(binding.SubscribeToTask, &a2apb.SubscribeToTaskRequest{Id: id}, options...)
}

// event wants the next event.
func (s *stream) event() binding.Event {
	s.c.t.Helper()
	e, err := s.Next()
	require.NoError(s.c.t, err)
	return e
}

// task wants the next event to be a Task.
func (s *stream) task() *a2apb.Task {
	s.c.t.Helper()
	e := s.event()
	require.NotNil(s.c.t, e.GetTask(), "want a task, got %v", e)
	return e.GetTask()
}

// rest reads to the end, which must be a clean one.
func (s *stream) rest() []binding.Event {
	s.c.t.Helper()
	var events []binding.Event
	for {
		e, err := s.Next()
		if errors.Is(err, io.EOF) {
			return events
		}
		require.NoError(s.c.t, err, "after %d events", len(events))
		events = append(events, e)
	}
}

// until reads up to the first event that fits.
func (s *stream) until(fits func(binding.Event) bool) []binding.Event {
	s.c.t.Helper()
	var events []binding.Event
	for {
		e := s.event()
		events = append(events, e)
		if fits(e) {
			return events
		}
	}
}

func inState(want a2apb.TaskState) func(binding.Event) bool {
	return func(e binding.Event) bool {
		return e.GetStatusUpdate().GetStatus().GetState() == want || e.GetTask().GetStatus().GetState() == want
	}
}

// replay is what events tell of a task.
func (c *caller) replay(events []binding.Event) *a2apb.Task {
	c.t.Helper()
	told, err := binding.Replay(events)
	require.NoError(c.t, err)
	return told
}

// requireSame compares what a stream told with what the task is.
func (c *caller) requireSame(told, stored *a2apb.Task) {
	c.t.Helper()
	require.NoError(c.t, binding.Compare(told, stored))
}

func (c *caller) requireEqual(want, got proto.Message) {
	c.t.Helper()
	require.True(c.t, proto.Equal(want, got), "want %v\ngot  %v", want, got)
}

// requireGrowingIDs: the id of an event is its version, and versions of
// events grow.
func (c *caller) requireGrowingIDs(events []binding.Event) {
	c.t.Helper()
	if c.Name() == "grpc" {
		return
	}
	last := 0
	for _, e := range events {
		id, err := strconv.Atoi(e.ID)
		require.NoError(c.t, err, "id of %v", e)
		require.Greater(c.t, id, last)
		last = id
	}
}
