package agent

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/google/uuid"
)

// claim is what the runs of one claim share.
type claim struct {
	Claim
	logger *slog.Logger
	// Names the turn: the same in all its attempts.
	turn uuid.UUID

	// Held by who writes, so that events keep the order of the calls.
	write chan struct{}

	mu sync.Mutex
	// All user messages that are known, oldest first; the first handed of them
	// were handed to a handler.
	messages []*eventv1.UserMessage
	handed   int
	// How many default artifact ids were given out.
	artifacts int
	// Set once nothing more can be written.
	outcome *Outcome
	// What the store or a limit refused: the task is going to fail by it.
	refused error
}

// run is what belongs to one call of the handler.
type run struct {
	// Index of the first message that no earlier run was handed.
	first int
	// The turn wasn't settled because of a newer message.
	newer bool
	// Returning without having settled is an error.
	mustSettle bool
	ended      bool
}

func newClaim(c Claim) *claim {
	t := c.Proto.GetTask()
	return &claim{
		Claim: c,
		logger: c.Logger.With("task_id", t.GetId(), "context_id", t.GetContextId(), "tenant", c.Proto.GetTenant(),
			"agent", c.Agent.Name, "lease_epoch", c.Proto.GetLeaseEpoch(), "attempt", c.Proto.GetAttempt()),
		turn:     turnID(c.Proto),
		messages: slices.Clone(c.Proto.GetMessages()),
		write:    make(chan struct{}, 1),
	}
}

// turnID depends on what all attempts of a turn share: when it was first
// claimed, and the messages before it.
func turnID(c *taskstorev1.Claim) uuid.UUID {
	name := fmt.Sprintf("%s %d %d", c.GetTask().GetId(), c.GetHandledVersion(), c.GetTurnStarted().AsTime().UnixMilli())
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("errand:turn:"+name))
}

// begin hands all messages that are known to a new run.
func (c *claim) begin() *Task {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.handed
	if first == 0 {
		for first < len(c.messages) && c.messages[first].GetVersion() <= c.Proto.GetHandledVersion() {
			first++
		}
	}
	c.handed = len(c.messages)
	t := &Task{c: c, run: run{first: first}}
	t.lookup = lookup{memory: c.Store, tenant: c.Proto.GetTenant(), agent: c.Agent.Name, message: t.Message}
	t.remember(t.Owner(), t.ContextID(), t.ID())
	return t
}

// end makes t useless: a handler that was given up may still hold it.
func (t *Task) end() {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	t.run.ended = true
}

// handledVersion is the version of the newest message that was handed out.
func (c *claim) handledVersion() int64 {
	return newest(c.messages[:c.handed])
}

// fetch reads user messages that came after those that are known.
func (c *claim) fetch(ctx context.Context) error {
	c.mu.Lock()
	after := newest(c.messages)
	c.mu.Unlock()
	answer, err := c.Store.ListUserMessages(ctx, &taskstorev1.ListUserMessagesRequest{
		Tenant: c.Proto.GetTenant(), TaskId: c.Proto.GetTask().GetId(), After: after,
	})
	if err != nil {
		return fmt.Errorf("list user messages of task %s: %w", c.Proto.GetTask().GetId(), storeError(err))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range answer.GetMessages() {
		if m.GetVersion() > newest(c.messages) {
			c.messages = append(c.messages, m)
		}
	}
	return nil
}
