package agenttest

import (
	"context"
	"sync"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/pkg/task"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// Turn is a task that the agent is at.
type Turn struct {
	c    *Cluster
	r    *record
	done chan struct{}

	mu    sync.Mutex
	ctx   context.Context //nolint:containedctx // of the claim at hand, replaced by the next one
	stop  context.CancelCauseFunc
	lease *lease
}

// TaskID is the task's id.
func (t *Turn) TaskID() string { return t.r.task.GetId() }

// Wait returns the task once the turn is settled.
func (t *Turn) Wait() *a2apb.Task {
	<-t.done
	t.c.store.mu.Lock()
	defer t.c.store.mu.Unlock()
	return proto.CloneOf(t.r.task)
}

// Say sends another message to the running task.
func (t *Turn) Say(m *a2apb.Message) error {
	m = proto.CloneOf(m)
	m.TaskId = t.TaskID()
	_, err := t.c.store.accept(m)
	return err
}

// Cancel cancels the task, as the sender's CancelTask with this metadata does.
func (t *Turn) Cancel(metadata *structpb.Struct) {
	t.c.store.mu.Lock()
	t.r.setState(task.Canceled)
	t.c.store.mu.Unlock()
	t.end(&agent.CanceledError{Metadata: metadata})
}

// Drain stops the executor below the handler. If the turn isn't settled, it
// runs again.
func (t *Turn) Drain() { t.end(agent.ErrDraining) }

// Lose takes the lease away, as when the process was paused for too long. The
// turn runs again as its next attempt.
func (t *Turn) Lose() {
	t.c.store.mu.Lock()
	t.r.lease = nil
	t.r.attempt++
	t.c.store.mu.Unlock()
	t.end(agent.ErrLeaseLost)
}

func (t *Turn) end(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stop(cause)
}

// next claims the task anew.
func (t *Turn) next() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ctx, t.stop = context.WithCancelCause(context.Background())
	t.lease = t.c.store.claim(t.r)
}

// attempts bounds a handler that asks for a retry for ever.
const attempts = 100

func (t *Turn) loop() {
	defer close(t.done)
	for range attempts {
		t.c.claim(t.lease).Run(t.ctx)
		t.stop(nil)
		if !t.c.store.queued(t.r) {
			return
		}
		t.next()
	}
	t.c.logger.Error("turn given up", "task_id", t.TaskID(), "attempts", attempts)
}
