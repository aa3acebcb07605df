package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/google/uuid"
)

// storePause is how long a task waits after the store could not be reached.
const storePause = time.Second

var errNotSettled = errors.New("handler returned without settling the turn")

// finish does what is left to do after a handler has returned. It returns nil
// if the handler is to be called again, with a newer message.
func (c *claim) finish(ctx context.Context, t *Task, r returned) *Outcome {
	outcome, run, refused := t.peek()
	if outcome != nil {
		if r.err != nil {
			c.logger.WarnContext(ctx, "handler failed after its turn had ended", "error", r.err)
		}
		return outcome
	}
	var panicked *panicError
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, ErrCanceled), errors.Is(cause, ErrLeaseLost):
		return &Outcome{Err: cause}
	case refused != nil:
		return c.fail(ctx, refused)
	case errors.As(r.err, &panicked):
		return c.fail(ctx, r.err)
	case errors.Is(cause, ErrMaxRuntime):
		return c.fail(ctx, cause)
	case cause != nil:
		return c.release(ctx, 0, false)
	case run.newer && (r.err == nil || errors.Is(r.err, ErrNewerMessage)):
		return nil
	case errors.Is(r.err, ErrUnavailable):
		c.logger.WarnContext(ctx, "handler is to be run again", "error", r.err)
		return c.release(ctx, storePause, true)
	case r.err != nil:
		return c.fail(ctx, r.err)
	case run.mustSettle:
		return c.fail(ctx, errNotSettled)
	default:
		return c.complete(ctx, t)
	}
}

// complete settles the turn for a handler that returned nil.
func (c *claim) complete(ctx context.Context, t *Task) *Outcome {
	err := t.Complete(ctx)
	switch {
	case err == nil:
		return &Outcome{State: task.Completed}
	case errors.Is(err, ErrNewerMessage):
		return nil
	case errors.Is(err, ErrTooLarge), errors.Is(err, ErrRefused):
		return c.fail(ctx, err)
	case errors.Is(err, ErrUnavailable):
		return c.release(ctx, storePause, true)
	default:
		return &Outcome{Err: err}
	}
}

// fail settles the task as failed. The sender gets a safe text, the log the
// cause, and both an id to find one by the other.
func (c *claim) fail(ctx context.Context, cause error) *Outcome {
	id := uuid.NewString()
	event, err := statusEvent(task.Failed, []*a2apb.Part{Text(safeText(cause) + " Reference: " + id)})
	if err != nil {
		return &Outcome{Err: err}
	}
	c.write <- struct{}{}
	defer func() { <-c.write }()
	if outcome := c.ended(); outcome != nil {
		return outcome // by a handler that was left behind
	}
	if err := c.settleFailed(context.WithoutCancel(ctx), event); err != nil {
		return &Outcome{Err: err}
	}
	c.logger.ErrorContext(ctx, "task failed by its handler", "error", cause, "error_id", id)
	return &Outcome{State: task.Failed}
}

// settleFailed counts messages as handled that the handler wasn't handed: it
// has shown that it can't go on.
func (c *claim) settleFailed(ctx context.Context, event *taskstorev1.TaskEvent) error {
	for {
		c.mu.Lock()
		handled := newest(c.messages)
		c.mu.Unlock()
		err := c.Lease.Settle(ctx, Settlement{Event: event, HandledVersion: handled})
		if !errors.Is(err, ErrNewerMessage) {
			return err
		}
		if err := c.fetch(ctx); err != nil {
			return err
		}
	}
}

func safeText(cause error) string {
	switch {
	case errors.Is(cause, ErrTooLarge):
		return fmt.Sprintf("The agent's result is %s.", cause)
	case errors.Is(cause, ErrMaxRuntime):
		return "The agent did not finish in the time allowed."
	default:
		return "The agent failed."
	}
}

// release gives the task back undone; failed counts the attempt.
func (c *claim) release(ctx context.Context, delay time.Duration, failed bool) *Outcome {
	c.write <- struct{}{}
	defer func() { <-c.write }()
	if outcome := c.ended(); outcome != nil {
		return outcome
	}
	if err := c.Lease.Release(context.WithoutCancel(ctx), delay, failed); err != nil {
		return &Outcome{Err: err}
	}
	return &Outcome{Released: true}
}

func (c *claim) ended() *Outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.outcome
}

// peek reads how t stands.
func (t *Task) peek() (*Outcome, run, error) {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	return t.c.outcome, t.run, t.c.refused
}
