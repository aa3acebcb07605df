package main

import (
	"context"
	"errors"
	"iter"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"github.com/errandhq/errand/pkg/client"
	"github.com/errandhq/errand/pkg/task"
)

// follower goes through the updates of a task.
type follower struct {
	console *console
	target  *target
	// Prints what happens as it happens; nil for a command that prints the end alone.
	live *transcript
}

// follow returns the last state of the task, or the direct answer. When it is
// interrupted it says how to go on; request is what was sent, if anything.
func (f *follower) follow(
	ctx context.Context, updates iter.Seq2[*client.Update, error], request *a2apb.SendMessageRequest,
) (last *a2apb.Task, answer *a2apb.Message, err error) {
	c := f.console
	c.doing("sending")
	defer c.watching(ctx)()
	for update, err := range updates {
		if err != nil {
			f.left(last, request, err)
			return nil, nil, err
		}
		last, answer = update.Task, update.Event.GetMessage()
		if err := f.show(update); err != nil {
			return nil, nil, err
		}
		if last != nil && !task.Terminal(last.GetStatus().GetState()) {
			c.doing(stateName(last))
		}
	}
	return last, answer, nil
}

func (f *follower) show(update *client.Update) error {
	switch {
	case f.live == nil:
		f.progress(update)
		return nil
	case f.target.json():
		return f.console.json(update.Event)
	}
	f.progress(update)
	if answer := update.Event.GetMessage(); answer != nil {
		f.console.parts(answer.GetParts())
	}
	f.live.update(update)
	return nil
}

// progress notes what the agent says meanwhile.
func (f *follower) progress(update *client.Update) {
	status := update.Event.GetStatusUpdate().GetStatus()
	// The stream stays open while the agent waits for an authorization: whoever
	// sees only the end would wait without knowing for what.
	waits := f.live == nil && status.GetState() == task.AuthRequired
	if text := textOf(status.GetMessage()); text != "" && (waits || !task.Settled(status.GetState())) {
		f.console.notef("%s: %s", stateName(update.Task), text)
	}
}

// left says how to take up again what goes on without us.
func (f *follower) left(last *a2apb.Task, request *a2apb.SendMessageRequest, err error) {
	_, answered := errors.AsType[*client.Error](err)
	switch {
	case last != nil && !task.Terminal(last.GetStatus().GetState()):
		f.console.notef("task %s goes on; follow it with: %s", last.GetId(), f.target.again("subscribe", last.GetId()))
	case last == nil && request != nil && (!answered || errors.Is(err, client.ErrUnavailable)):
		id := request.GetMessage().GetMessageId()
		f.console.notef("no answer yet; to ask again, repeat the command with --message-id %s", id)
	}
}
