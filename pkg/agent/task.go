package agent

import (
	"log/slog"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/uuid"
)

// Task is what one run of a handler sees of its task. Its methods may be called
// from several goroutines until the handler returns.
type Task struct {
	lookup
	c *claim
	// Guarded by c.mu.
	run run
}

// ID is the task's id, a UUID.
func (t *Task) ID() string { return t.c.Proto.GetTask().GetId() }

// ContextID is the id of the context that the task belongs to.
func (t *Task) ContextID() string { return t.c.Proto.GetTask().GetContextId() }

// Tenant is the tenant of the sender.
func (t *Task) Tenant() string { return t.c.Proto.GetTenant() }

// Owner is the subject that created the task.
func (t *Task) Owner() string { return t.c.Proto.GetOwner() }

// Snapshot is the task as it was claimed: state, history, artifacts, metadata.
// What was said and emitted since is not in it. It is shared: do not change it.
func (t *Task) Snapshot() *a2apb.Task { return t.c.Proto.GetTask() }

// Attempt counts the claims of this turn, from 1. Above 1 an earlier run was
// lost or asked for a retry, and may have had effects.
func (t *Task) Attempt() int { return int(t.c.Proto.GetAttempt()) }

// IdempotencyKey is a UUID that all attempts of this turn share and no other
// turn has. A handler with an effect for each message joins it with the id of
// that message.
func (t *Task) IdempotencyKey() string { return t.c.turn.String() }

// Logger names the task in each of its lines.
func (t *Task) Logger() *slog.Logger { return t.c.logger }

// artifactID is the n-th default id of the turn.
func (c *claim) artifactID(n int) string {
	return uuid.NewSHA1(c.turn, []byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}).String() //nolint:gosec // the four bytes of n
}
