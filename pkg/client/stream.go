package client

import (
	"context"
	"fmt"
	"iter"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/pkg/task"
)

// Update is one step of a task, or a direct Message.
type Update struct {
	// Event is what the server sent. A task stands in it at the beginning, and
	// again whenever the stream had to be resumed or the task was polled.
	Event *a2apb.StreamResponse
	// Task is the task with all events up to this one applied, artifacts put
	// together; nil for a direct Message. The next step changes it in place.
	Task *a2apb.Task
	// Resync says that the server left out what happened before this step: Event is
	// the task as it is now. Errand says so over HTTP; others, and gRPC, don't.
	Resync bool
}

// Stream sends a message and gives the steps of what comes of it (A2A §3.1.2).
// It ends after a direct Message, or when the task is terminal or asks for
// input. A stream that is cut before is resumed: after the last event where the
// server numbers them, else with a fresh task; where neither works the task is
// polled. Breaking the loop leaves the task running.
func (c *Client) Stream(ctx context.Context, request *a2apb.SendMessageRequest) iter.Seq2[*Update, error] {
	request = prepared(request)
	return func(yield func(*Update, error) bool) {
		f := c.newFollower(request.GetTenant(), "")
		f.begin = func(ctx context.Context) (stream, error) { return c.open(ctx, opStream, request, "") }
		if !c.card.GetCapabilities().GetStreaming() {
			f.polls = true
			f.begin = func(ctx context.Context) (stream, error) { return c.sendOnly(ctx, request) }
		}
		f.stop = func(s task.State, snapshot bool) bool {
			// The snapshot that begins a follow-up may show the question that it answers.
			asks := s == task.InputRequired && (!snapshot || f.rounds > 1)
			return task.Terminal(s) || asks
		}
		f.run(ctx, yield)
	}
}

// Subscribe gives the steps of a task until it is terminal (A2A §3.1.6), the
// task as it is first. It survives what Stream survives.
func (c *Client) Subscribe(ctx context.Context, request *a2apb.SubscribeToTaskRequest) iter.Seq2[*Update, error] {
	return func(yield func(*Update, error) bool) {
		f := c.newFollower(request.GetTenant(), request.GetId())
		f.stop = func(s task.State, _ bool) bool { return task.Terminal(s) }
		f.run(ctx, yield)
	}
}

// Wait returns a task once it is terminal or waits for its sender.
func (c *Client) Wait(ctx context.Context, request *a2apb.GetTaskRequest) (*a2apb.Task, error) {
	f := c.newFollower(request.GetTenant(), request.GetId())
	f.stop = func(s task.State, _ bool) bool { return task.Settled(s) }
	var failed error
	f.run(ctx, func(_ *Update, err error) bool {
		failed = err
		return true
	})
	if failed != nil {
		return nil, failed
	}
	// The server's own view has the whole history.
	return c.Get(ctx, request)
}

// sendOnly is the beginning of a stream at an agent that has none.
func (c *Client) sendOnly(ctx context.Context, request *a2apb.SendMessageRequest) (stream, error) {
	request = proto.CloneOf(request)
	if request.Configuration == nil {
		request.Configuration = &a2apb.SendMessageConfiguration{}
	}
	request.Configuration.ReturnImmediately = true
	response := &a2apb.SendMessageResponse{}
	if err := c.call(ctx, opSend, request, response); err != nil {
		return nil, err
	}
	switch payload := response.GetPayload().(type) {
	case *a2apb.SendMessageResponse_Task:
		return &single{taskEvent(payload.Task)}, nil
	case *a2apb.SendMessageResponse_Message:
		return &single{&a2apb.StreamResponse{Payload: &a2apb.StreamResponse_Message{Message: payload.Message}}}, nil
	}
	return nil, fmt.Errorf("%w: neither a task nor a message", ErrProtocol)
}

func taskEvent(t *a2apb.Task) *a2apb.StreamResponse {
	return &a2apb.StreamResponse{Payload: &a2apb.StreamResponse_Task{Task: t}}
}
