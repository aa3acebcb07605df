package sqlite

import (
	"fmt"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

// store writes what was decided. What belongs to a task is written before the
// task's own row, which may become terminal and then takes nothing more.
func store(c *conn, ch *engine.Changes) error {
	steps := []struct {
		what string
		do   func() error
	}{
		{"insert tasks", func() error { return each(ch.InsertTasks, c.insertTask) }},
		{"insert messages", func() error { return each(ch.Messages, c.insertMessage) }},
		{"drop artifacts", func() error { return each(ch.DropArtifacts, c.dropArtifact) }},
		{"insert artifact chunks", func() error { return each(ch.Chunks, c.insertChunk) }},
		{"insert events", func() error { return each(ch.Events, c.insertEvent) }},
		{"update tasks", func() error { return each(ch.UpdateTasks, c.updateTask) }},
		{"put leases", func() error { return each(ch.PutLeases, c.putLease) }},
		{"drop leases", func() error { return each(ch.DropLeases, c.dropLease) }},
		{"update dedupe keys", func() error { return each(ch.UpdateDedupe, c.updateDedupe) }},
		{"drop dedupe keys", func() error { return each(ch.DropDedupe, c.dropDedupe) }},
		{"insert direct messages", func() error { return each(ch.Directs, c.insertDirect) }},
		{"touch contexts", func() error { return each(ch.TouchContexts, c.touchContext) }},
		{"put contexts", func() error { return each(ch.PutContexts, c.putContext) }},
		{"insert dead letters", func() error { return each(ch.DeadLetters, c.insertDeadLetter) }},
		{"redrive dead letters", func() error { return each(ch.RedriveDeadLetters, c.redriveDeadLetter) }},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

func (c *conn) insertTask(t *engine.Task) error {
	_, err := c.exec(insertTask, append(fixedValues(t), mutableValues(t)...)...)
	return err
}

func (c *conn) updateTask(u engine.TaskUpdate) error {
	changed, err := c.exec(updateTask, append(mutableValues(u.Task), taskID(u.Task.ID), u.ReadVersion, u.ReadLeaseEpoch)...)
	if err == nil && changed == 0 {
		err = engine.ErrConflict
	}
	return err
}

func (c *conn) insertMessage(m engine.Message) error {
	_, err := c.exec(`INSERT INTO messages (task_id, version, kind, data, request) VALUES (?, ?, ?, ?, ?)`,
		taskID(m.TaskID), m.Version, int64(m.Kind), notNull(m.Data), m.Request)
	return err
}

func (c *conn) dropArtifact(k engine.ArtifactKey) error {
	_, err := c.exec(`DELETE FROM artifact_chunks WHERE task_id = ? AND artifact_id = ?`, taskID(k.TaskID), k.ArtifactID)
	return err
}

func (c *conn) insertChunk(ch engine.Chunk) error {
	_, err := c.exec(`
INSERT INTO artifact_chunks (task_id, artifact_id, version, position, total, data)
VALUES (?, ?, ?, ?, ?, ?)`,
		taskID(ch.TaskID), ch.ArtifactID, ch.Version, ch.Position, ch.Total, notNull(ch.Data))
	return err
}

func (c *conn) insertEvent(ev engine.Event) error {
	_, err := c.exec(`
INSERT INTO events (task_id, version, tenant, created_at, publisher, publish_seq, data)
VALUES (?, ?, ?, ?, ?, ?, ?)`,
		taskID(ev.TaskID), ev.Version, ev.Tenant, ev.CreatedAt, ev.Publisher, ev.Seq, notNull(ev.Data))
	return err
}

func (c *conn) putLease(l engine.Lease) error {
	_, err := c.exec(`
INSERT INTO leases (task_id, lease_epoch, holder, expires_at)
VALUES (?, ?, ?, ?)
ON CONFLICT (task_id) DO UPDATE
SET lease_epoch = excluded.lease_epoch, holder = excluded.holder, expires_at = excluded.expires_at`,
		taskID(l.TaskID), l.Epoch, l.Holder, l.ExpiresAt)
	return err
}

func (c *conn) dropLease(id string) error {
	_, err := c.exec(`DELETE FROM leases WHERE task_id = ?`, taskID(id))
	return err
}
