package agent

import (
	"context"
	"errors"
	"fmt"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"google.golang.org/protobuf/proto"
)

// Flush waits until everything that was emitted so far is committed. Settling
// does the same.
func (t *Task) Flush(ctx context.Context) error {
	return t.locked(func() error { return t.c.Lease.Flush(ctx) })
}

func (t *Task) emit(ctx context.Context, event *taskstorev1.TaskEvent) error {
	return t.locked(func() error {
		event, err := t.c.prepare(event)
		if err != nil {
			return err
		}
		return t.c.Lease.Emit(ctx, event)
	})
}

// locked runs a write after all earlier ones, if t can still be written.
func (t *Task) locked(write func() error) error {
	t.c.write <- struct{}{}
	defer func() { <-t.c.write }()
	if err := t.writable(); err != nil {
		return err
	}
	return t.c.note(write())
}

func (t *Task) writable() error {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	if t.run.ended || t.c.outcome != nil {
		return ErrEnded
	}
	return t.c.refused
}

// note remembers an error by which the task is going to fail.
func (c *claim) note(err error) error {
	if errors.Is(err, ErrTooLarge) || errors.Is(err, ErrRefused) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.refused = err
	}
	return err
}

// prepare copies an event, since it is written after the handler has gone on,
// and makes it one that can be stored.
func (c *claim) prepare(event *taskstorev1.TaskEvent) (*taskstorev1.TaskEvent, error) {
	event = proto.CloneOf(event)
	clean(event.ProtoReflect())
	if size := proto.Size(event); size > c.MaxEventBytes {
		return nil, fmt.Errorf("%w: an event of %d bytes, at most %d", ErrTooLarge, size, c.MaxEventBytes)
	}
	return event, nil
}

// statusEvent makes a status update with a message of these parts, or without
// a message when there are none.
func statusEvent(state task.State, parts []*a2apb.Part) (*taskstorev1.TaskEvent, error) {
	s := &a2apb.TaskStatus{State: state}
	if len(parts) > 0 {
		if err := checkParts(parts); err != nil {
			return nil, fmt.Errorf("status message: %w", err)
		}
		s.Message = &a2apb.Message{MessageId: task.NewID(), Role: a2apb.Role_ROLE_AGENT, Parts: parts}
	}
	update := &a2apb.TaskStatusUpdateEvent{Status: s}
	return &taskstorev1.TaskEvent{Kind: &taskstorev1.TaskEvent_StatusUpdate{StatusUpdate: update}}, nil
}
