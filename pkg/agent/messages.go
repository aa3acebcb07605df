package agent

import (
	"context"
	"slices"

	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
)

// Message is the newest message of the sender that this run was handed,
// together with what came with its request: accepted output modes, metadata,
// active extensions, subject, trace. It is shared: do not change it.
func (t *Task) Message() *eventv1.UserMessage {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	if t.c.handed == 0 {
		return nil
	}
	return t.c.messages[t.c.handed-1]
}

// Messages are all the sender's messages that were handed out, oldest first.
func (t *Task) Messages() []*eventv1.UserMessage {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	return slices.Clone(t.c.messages[:t.c.handed])
}

// NewMessages are those of Messages that no earlier run has dealt with: usually
// one, more if the sender said more before the run began, none if a grant that
// [Task.AskAuth] gave was redeemed. Messages from [Task.Next] count among them.
func (t *Task) NewMessages() []*eventv1.UserMessage {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	return slices.Clone(t.c.messages[t.run.first:t.c.handed])
}

// Next waits for the next message that the sender sends while the handler runs.
// Once handed, it counts as handled when the turn is settled.
func (t *Task) Next(ctx context.Context) (*eventv1.UserMessage, error) {
	for {
		m, taken, err := t.take()
		if taken || err != nil {
			return m, err
		}
		select {
		case <-t.c.Lease.Appended():
			if err := t.c.fetch(ctx); err != nil {
				return nil, err
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// take hands out the oldest message that wasn't yet, if there is one.
func (t *Task) take() (m *eventv1.UserMessage, taken bool, err error) {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	if t.run.ended {
		return nil, false, ErrEnded
	}
	if t.c.handed == len(t.c.messages) {
		return nil, false, nil
	}
	m = t.c.messages[t.c.handed]
	t.c.handed++
	t.run.newer = t.c.handed < len(t.c.messages)
	return m, true, nil
}
