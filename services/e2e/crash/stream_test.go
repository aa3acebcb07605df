package crash_test

import (
	"context"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"github.com/errandhq/errand/services/e2e/internal/binding"
)

// stream follows a message to the end of its task over as many connections as it
// takes.
func (s *sender) stream(text string, parts int) (*promise, bool) {
	p := &promise{agent: s.agent, messages: 1, parts: parts}
	in := s.message(text)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for ; !ended(p.events) && ctx.Err() == nil; s.giveWay() {
		stream, answer, err := s.open(ctx, in, p.events)
		switch {
		case err != nil || stream == nil && retryable(answer.Err):
			continue
		case stream == nil && answer.Err.Reason() == "UNSUPPORTED_OPERATION":
			// It is over. Without event ids the task as it is stands for the rest.
			task, ok := call[*a2apb.Task](s, binding.GetTask, &a2apb.GetTaskRequest{Id: p.events[0].GetTask().GetId()})
			if !ok {
				return p, false
			}
			last := &a2apb.StreamResponse{Payload: &a2apb.StreamResponse_Task{Task: task}}
			p.events = append(p.events, binding.Event{StreamResponse: last})
		case stream == nil:
			s.t.Errorf("stream over %s refused: %v", s.way().Name(), answer.Err)
			return p, false
		default:
			p.events = append(p.events, read(stream)...)
		}
	}
	if !ended(p.events) {
		s.t.Errorf("a stream over %s does not end: %v", s.way().Name(), p.events)
		return p, false
	}
	p.taskID = p.events[0].GetTask().GetId()
	p.told = []string{p.taskID}
	return p, true
}

// open sends the message until a stream has told the task, and then goes on after
// the last event.
func (s *sender) open(ctx context.Context, in *a2apb.SendMessageRequest, events []binding.Event) (*binding.Stream, *binding.Answer, error) {
	if len(events) == 0 {
		return s.way().Open(ctx, binding.SendStreamingMessage, in) //nolint:wrapcheck // only counted
	}
	resume := &a2apb.SubscribeToTaskRequest{Id: events[0].GetTask().GetId()}
	last := binding.With("Last-Event-ID")
	if id := events[len(events)-1].ID; id != "" {
		last = binding.With("Last-Event-ID", id)
	}
	return s.way().Open(ctx, binding.SubscribeToTask, resume, last) //nolint:wrapcheck // only counted
}

// read reads until the stream ends, in whatever way.
func read(stream *binding.Stream) []binding.Event {
	defer stream.Close()
	var events []binding.Event
	for e, err := stream.Next(); err == nil; e, err = stream.Next() {
		events = append(events, e)
	}
	return events
}

func ended(events []binding.Event) bool {
	if len(events) == 0 {
		return false
	}
	last := events[len(events)-1]
	return terminal(last.GetStatusUpdate().GetStatus().GetState()) || terminal(last.GetTask().GetStatus().GetState())
}

func terminal(s a2apb.TaskState) bool {
	switch s {
	case a2apb.TaskState_TASK_STATE_COMPLETED, a2apb.TaskState_TASK_STATE_FAILED,
		a2apb.TaskState_TASK_STATE_CANCELED, a2apb.TaskState_TASK_STATE_REJECTED:
		return true
	default:
		return false
	}
}
