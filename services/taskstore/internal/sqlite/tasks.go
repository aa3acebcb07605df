package sqlite

import "github.com/errandhq/errand/services/taskstore/internal/engine"

// taskColumns is in the order of scanTask and taskValues.
const taskColumns = `id, tenant, agent, owner, context_id, created_at, state, status_version, status_time,
	version, message_version, handled_version, metadata, content_bytes, terminal_at, phase, queued_at, due_at,
	enqueue_count, lease_epoch, write_seq, holder, attempt, turn_started_at, traceparent, grant_hash`

const insertTask = `
INSERT INTO tasks (` + taskColumns + `)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

const updateTask = `
UPDATE tasks
SET state = ?, status_version = ?, status_time = ?, version = ?, message_version = ?, handled_version = ?,
	metadata = ?, content_bytes  = ?, terminal_at = ?, phase = ?, queued_at = ?, due_at = ?, enqueue_count = ?,
	lease_epoch = ?, write_seq = ?, holder = ?, attempt = ?, turn_started_at = ?, traceparent = ?, grant_hash = ?
WHERE id = ?
	AND version = ?
	AND lease_epoch = ?
	AND state NOT IN (3, 4, 5, 7)`

func scanTask(r *row) *engine.Task {
	return &engine.Task{
		ID: r.id(), Tenant: r.text(), Agent: r.text(), Owner: r.text(), ContextID: r.text(), CreatedAt: r.time(),
		State: r.state(), StatusVersion: r.int(), StatusTime: r.time(),
		Version: r.int(), MessageVersion: r.int(), HandledVersion: r.int(),
		Metadata: r.blob(), ContentBytes: r.int(), TerminalAt: r.time(),
		Phase: engine.Phase(r.int()), QueuedAt: r.time(), DueAt: r.time(), EnqueueCount: r.int(), //nolint:gosec // checked by the schema
		LeaseEpoch: r.int(), WriteSeq: r.int(), Holder: r.text(), Attempt: int32(r.int()), TurnStartedAt: r.time(), //nolint:gosec // written from one
		Traceparent: r.text(), GrantHash: r.blob(),
	}
}

func fixedValues(t *engine.Task) []any {
	return []any{taskID(t.ID), t.Tenant, t.Agent, t.Owner, t.ContextID, t.CreatedAt}
}

func mutableValues(t *engine.Task) []any {
	return []any{
		int64(t.State), t.StatusVersion, t.StatusTime, t.Version, t.MessageVersion, t.HandledVersion,
		t.Metadata, t.ContentBytes, t.TerminalAt, int64(t.Phase), t.QueuedAt, t.DueAt, t.EnqueueCount,
		t.LeaseEpoch, t.WriteSeq, t.Holder, int64(t.Attempt), t.TurnStartedAt, t.Traceparent, t.GrantHash,
	}
}

// scoped limits a query to a scope; an empty member doesn't limit.
func scoped(s engine.Scope) (where string, args []any) {
	if s.Tenant != "" {
		where, args = where+" AND tenant = ?", append(args, s.Tenant)
	}
	if s.Agent != "" {
		where, args = where+" AND agent = ?", append(args, s.Agent)
	}
	if s.Owner != "" {
		where, args = where+" AND owner = ?", append(args, s.Owner)
	}
	return where, args
}

// findTask reads one task, nil if there is none within the scope.
func (c *conn) findTask(scope engine.Scope, id string) (*engine.Task, error) {
	var found *engine.Task
	where, args := scoped(scope)
	err := c.query(`SELECT `+taskColumns+` FROM tasks WHERE id = ?`+where, func(r *row) error {
		found = scanTask(r)
		return nil
	}, append([]any{taskID(id)}, args...)...)
	return found, err
}
