package agent

import (
	"context"
	"errors"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/task"
)

// Complete settles the task as done. What the agent made belongs into
// artifacts; parts, if any, are a closing remark.
//
// Like all that settle it commits what was emitted before, doesn't end with the
// handler's context, and fails with ErrNewerMessage when the sender said more
// in the meantime. After it nothing can be written.
func (t *Task) Complete(ctx context.Context, parts ...*a2apb.Part) error {
	return t.settle(ctx, task.Completed, "", parts)
}

// Reject settles the task as refused by the agent.
func (t *Task) Reject(ctx context.Context, parts ...*a2apb.Part) error {
	return t.settle(ctx, task.Rejected, "", parts)
}

// Fail settles the task as failed, with a message that the sender may see.
func (t *Task) Fail(ctx context.Context, parts ...*a2apb.Part) error {
	return t.settle(ctx, task.Failed, "", parts)
}

// AskInput parks the task until the sender answers; the handler then runs anew.
func (t *Task) AskInput(ctx context.Context, parts ...*a2apb.Part) error {
	return t.settle(ctx, task.InputRequired, "", parts)
}

// AskAuth parks the task until the sender is authorized for what parts
// describe. The handler runs anew when the grant (see [Task.NewGrant]) is
// redeemed by [Resume], or the sender answers. An empty grant leaves only that.
func (t *Task) AskAuth(ctx context.Context, grant string, parts ...*a2apb.Part) error {
	return t.settle(ctx, task.AuthRequired, grant, parts)
}

// MustSettle makes returning nil without having settled a fault of the handler,
// which fails the task, instead of completing it.
func (t *Task) MustSettle() {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	t.run.mustSettle = true
}

// Retry gives the task back, to be run again after delay (a day at most) by any
// executor. The run counts as an attempt; after max_attempts the task fails. What was emitted
// is committed before. After it nothing can be written.
func (t *Task) Retry(ctx context.Context, delay time.Duration) error {
	return t.locked(func() error {
		err := t.c.Lease.Release(context.WithoutCancel(ctx), delay, true)
		if err == nil {
			t.c.conclude(Outcome{Released: true})
		}
		return err
	})
}

func (t *Task) settle(ctx context.Context, state task.State, grant string, parts []*a2apb.Part) error {
	event, err := statusEvent(state, parts)
	if err != nil {
		return err
	}
	return t.locked(func() error {
		if event, err = t.c.prepare(event); err != nil {
			return err
		}
		return t.commit(ctx, Settlement{Event: event, Grant: grant})
	})
}

// commit settles, unless a message is known that wasn't handed out.
func (t *Task) commit(ctx context.Context, s Settlement) error {
	ctx = context.WithoutCancel(ctx)
	t.c.mu.Lock()
	s.HandledVersion = t.c.handledVersion()
	newer := t.c.handed < len(t.c.messages)
	t.c.mu.Unlock()
	if !newer {
		err := t.c.Lease.Settle(ctx, s)
		switch {
		case err == nil:
			t.c.conclude(Outcome{State: s.Event.GetStatusUpdate().GetStatus().GetState()})
			return nil
		case !errors.Is(err, ErrNewerMessage):
			return err
		}
		if err := t.c.fetch(ctx); err != nil {
			return err
		}
	}
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	t.run.newer = true
	return ErrNewerMessage
}

// conclude ends the claim.
func (c *claim) conclude(o Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.outcome == nil {
		c.outcome = &o
	}
}
