package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

// ReadTasks implements engine.Reader.
func (e *Engine) ReadTasks(ctx context.Context, scope engine.Scope, ids []string, detail engine.Detail) ([]*engine.Snapshot, error) {
	var found []*engine.Snapshot
	err := e.read(ctx, func(c *conn) error {
		for _, id := range ids {
			t, err := c.findTask(scope, id)
			if err != nil {
				return err
			}
			if t == nil {
				continue
			}
			s, err := c.snapshot(t, detail)
			if err != nil {
				return err
			}
			found = append(found, s)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read tasks: %w", err)
	}
	return found, nil
}

// snapshot completes a task's row. It runs in the transaction that read the row.
func (c *conn) snapshot(t *engine.Task, detail engine.Detail) (*engine.Snapshot, error) {
	s := &engine.Snapshot{Task: t}
	err := c.readMessages(s, detail.History)
	if err == nil && detail.Artifacts {
		s.Chunks, err = c.chunks(t.ID)
	}
	return s, err
}

// readMessages reads the newest messages, with one more for the message of the
// current status, which is nearly always among them.
func (c *conn) readMessages(s *engine.Snapshot, history int) error {
	t := s.Task
	limit := history
	if history >= 0 {
		limit++
	}
	oldest := t.Version + 1
	err := c.messages(`1 ORDER BY version DESC LIMIT ?`, func(m engine.Message) {
		oldest = m.Version
		switch {
		case m.Version == t.StatusVersion && m.Kind == engine.MessageStatus:
			s.StatusMessage = &m
		case history < 0 || len(s.History) < history:
			s.History = append(s.History, m)
		}
	}, taskID(t.ID), limit)
	slices.Reverse(s.History)
	if err != nil || s.StatusMessage != nil || oldest <= t.StatusVersion {
		return err
	}
	return c.messages(`version = ? AND kind = 2`, func(m engine.Message) { s.StatusMessage = &m }, taskID(t.ID), t.StatusVersion)
}

func (c *conn) messages(condition string, each func(engine.Message), args ...any) error {
	err := c.query(`SELECT task_id, version, kind, data, request FROM messages WHERE task_id = ? AND `+condition, func(r *row) error {
		each(engine.Message{
			TaskID: r.id(), Version: r.int(), Kind: engine.MessageKind(r.int()), //nolint:gosec // checked by the schema
			Data: r.blob(), Request: r.blob(),
		})
		return nil
	}, args...)
	if err != nil {
		return fmt.Errorf("read messages: %w", err)
	}
	return nil
}

func (c *conn) chunks(id string) ([]engine.Chunk, error) {
	var chunks []engine.Chunk
	err := c.query(`
SELECT task_id, artifact_id, version, position, total, data
FROM artifact_chunks
WHERE task_id = ?
ORDER BY position, version`, func(r *row) error {
		chunks = append(chunks, engine.Chunk{
			ArtifactKey: engine.ArtifactKey{TaskID: r.id(), ArtifactID: r.text()},
			Version:     r.int(), Position: r.int(), Total: r.int(), Data: r.blob(),
		})
		return nil
	}, taskID(id))
	if err != nil {
		return nil, fmt.Errorf("read artifact chunks: %w", err)
	}
	return chunks, nil
}

// ReadHeads implements engine.Reader.
func (e *Engine) ReadHeads(ctx context.Context, refs []engine.TaskRef) ([]engine.Head, error) {
	var heads []engine.Head
	err := e.read(ctx, func(c *conn) error {
		for _, ref := range refs {
			err := c.query(`SELECT id, version, state FROM tasks WHERE id = ? AND tenant = ?`, func(r *row) error {
				heads = append(heads, engine.Head{ID: r.id(), Version: r.int(), State: r.state()})
				return nil
			}, taskID(ref.ID), ref.Tenant)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read heads: %w", err)
	}
	return heads, nil
}

// ReadUserMessages implements engine.Reader.
func (e *Engine) ReadUserMessages(ctx context.Context, ref engine.TaskRef, after int64) ([]engine.Message, error) {
	var found []engine.Message
	err := e.read(ctx, func(c *conn) error {
		t, err := c.findTask(engine.Scope{Tenant: ref.Tenant}, ref.ID)
		if err != nil || t == nil {
			return err
		}
		return c.messages(`version > ? AND kind = 1 ORDER BY version`,
			func(m engine.Message) { found = append(found, m) }, taskID(ref.ID), after)
	})
	if err != nil {
		return nil, fmt.Errorf("read user messages: %w", err)
	}
	return found, nil
}

const eventColumns = `tenant, task_id, version, created_at, publisher, publish_seq, data`

func scanEvent(r *row) engine.Event {
	return engine.Event{
		Tenant: r.text(), TaskID: r.id(), Version: r.int(), CreatedAt: r.time(),
		Publisher: r.text(), Seq: r.int(), Data: r.blob(),
	}
}

// ReadEvents implements engine.Reader.
func (e *Engine) ReadEvents(ctx context.Context, scope engine.Scope, id string, after int64, limit int) ([]engine.Event, engine.Head, error) {
	var events []engine.Event
	var head engine.Head
	err := e.read(ctx, func(c *conn) error {
		t, err := c.findTask(scope, id)
		if err != nil {
			return err
		}
		if t == nil {
			return engine.ErrNotFound
		}
		head = engine.Head{ID: t.ID, Version: t.Version, State: t.State}
		return c.query(`SELECT `+eventColumns+` FROM events WHERE task_id = ? AND version > ? ORDER BY version LIMIT ?`, func(r *row) error {
			events = append(events, scanEvent(r))
			return nil
		}, taskID(id), after, limit)
	})
	if errors.Is(err, engine.ErrNotFound) {
		return nil, engine.Head{}, engine.ErrNotFound
	}
	if err != nil {
		return nil, engine.Head{}, fmt.Errorf("read events: %w", err)
	}
	return events, head, nil
}
