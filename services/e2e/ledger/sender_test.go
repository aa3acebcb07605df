package ledger_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/services/e2e/internal/binding"
)

// sender is who has the books reconciled, over one binding.
type sender struct {
	binding.Binding
	t *testing.T
}

// errand is a task that was submitted, and a stream of it from its begin.
type errand struct {
	in     *a2apb.SendMessageRequest
	task   *a2apb.Task
	stream *binding.Stream
	// What the stream has told so far.
	seen []binding.Event
}

// submit sends a message, twice, and subscribes to its task before it runs.
func (s *sender) submit(in *a2apb.SendMessageRequest) *errand {
	s.t.Helper()
	in.Configuration = &a2apb.SendMessageConfiguration{ReturnImmediately: true}
	e := &errand{in: in, task: s.send(in)}
	require.Equal(s.t, submitted, e.task.GetStatus().GetState())
	s.same(e.task, s.send(in))
	e.stream = s.subscribe(e.task.GetId())
	e.seen = s.read(e.stream, inState(submitted))
	s.same(e.task, e.seen[0].GetTask())
	return e
}

// month is the two files of a month.
func (s *sender) month(name string) *a2apb.SendMessageRequest {
	s.t.Helper()
	return s.message(s.file("invoices-"+name+".csv"), s.file("ledger-"+name+".csv"))
}

func (s *sender) file(name string) *a2apb.Part {
	s.t.Helper()
	content, err := os.ReadFile(filepath.Join(example, "data", name))
	require.NoError(s.t, err)
	return &a2apb.Part{Content: &a2apb.Part_Raw{Raw: content}, Filename: name, MediaType: "text/csv"}
}

func (s *sender) message(parts ...*a2apb.Part) *a2apb.SendMessageRequest {
	return &a2apb.SendMessageRequest{Message: &a2apb.Message{
		MessageId: uuid.NewString(), Role: a2apb.Role_ROLE_USER, Parts: parts,
	}}
}

func (s *sender) within() context.Context {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	s.t.Cleanup(cancel)
	return ctx
}

func (s *sender) send(in *a2apb.SendMessageRequest) *a2apb.Task {
	s.t.Helper()
	answer, err := s.Call(s.within(), binding.SendMessage, in)
	require.NoError(s.t, err)
	require.Nil(s.t, answer.Err)
	return answer.Result.(*a2apb.SendMessageResponse).GetTask()
}

func (s *sender) get(id string) *a2apb.Task {
	s.t.Helper()
	answer, err := s.Call(s.within(), binding.GetTask, &a2apb.GetTaskRequest{Id: id})
	require.NoError(s.t, err)
	require.Nil(s.t, answer.Err)
	return answer.Result.(*a2apb.Task)
}

func (s *sender) subscribe(id string, options ...binding.Option) *binding.Stream {
	s.t.Helper()
	stream, answer, err := s.Open(s.within(), binding.SubscribeToTask, &a2apb.SubscribeToTaskRequest{Id: id}, options...)
	require.NoError(s.t, err)
	require.NotNil(s.t, stream, "%v", answer)
	s.t.Cleanup(stream.Close)
	return stream
}

// resume subscribes anew after an event, where events have ids.
func (s *sender) resume(id string, last binding.Event) *binding.Stream {
	s.t.Helper()
	if last.ID == "" {
		return s.subscribe(id)
	}
	return s.subscribe(id, binding.With("Last-Event-ID", last.ID))
}

// read reads up to the first event that fits.
func (s *sender) read(stream *binding.Stream, fits func(binding.Event) bool) []binding.Event {
	s.t.Helper()
	var events []binding.Event
	for {
		e, err := stream.Next()
		require.NoError(s.t, err, "after %v", events)
		events = append(events, e)
		if fits(e) {
			return events
		}
	}
}

// rest reads to the end, which must be a clean one.
func (s *sender) rest(stream *binding.Stream) []binding.Event {
	s.t.Helper()
	var events []binding.Event
	for {
		e, err := stream.Next()
		if errors.Is(err, io.EOF) {
			return events
		}
		require.NoError(s.t, err, "after %v", events)
		events = append(events, e)
	}
}

func inState(want a2apb.TaskState) func(binding.Event) bool {
	return func(e binding.Event) bool {
		return e.GetStatusUpdate().GetStatus().GetState() == want || e.GetTask().GetStatus().GetState() == want
	}
}

// chunk fits the n-th chunk of a stream.
func chunk(n int) func(binding.Event) bool {
	return func(e binding.Event) bool {
		if e.GetArtifactUpdate() != nil {
			n--
		}
		return n == 0
	}
}

func (s *sender) same(want, got proto.Message) {
	s.t.Helper()
	require.True(s.t, proto.Equal(want, got), "want %v\ngot  %v", want, got)
}

func (s *sender) sameEvents(want, got []binding.Event) {
	s.t.Helper()
	require.Len(s.t, got, len(want))
	for i := range want {
		require.Equal(s.t, want[i].ID, got[i].ID)
		s.same(want[i].StreamResponse, got[i].StreamResponse)
	}
}

func text(parts []*a2apb.Part) string {
	var all strings.Builder
	for _, part := range parts {
		all.WriteString(part.GetText())
	}
	return all.String()
}
