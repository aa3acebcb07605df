package store

import (
	"context"
	"time"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// CancelTasks moves tasks to CANCELED at once, whatever their handlers do.
func (s *Store) CancelTasks(
	ctx context.Context, requests []*taskstorev1.CancelTaskRequest,
) []Result[*taskstorev1.CancelTaskResponse] {
	return write(ctx, s, "cancel task", requests, s.newCancel, s.canceled)
}

type cancel struct {
	key      engine.TaskKey
	metadata *structpb.Struct

	refused error
}

func (s *Store) newCancel(_ context.Context, r *taskstorev1.CancelTaskRequest) (*cancel, error) {
	scope, err := s.scope(r.GetScope())
	return &cancel{key: engine.TaskKey{Scope: scope, ID: r.GetTaskId()}, metadata: r.GetMetadata()}, err
}

func (c *cancel) Keys() []any { return []any{c.key.ID} }

func (c *cancel) Size() int { return proto.Size(c.metadata) }

func (c *cancel) selects(_ time.Time, sel *engine.Selection) { sel.Tasks = append(sel.Tasks, c.key) }

func (c *cancel) decide(now time.Time, rows *engine.Loaded) decision {
	t := rows.Tasks[c.key.ID]
	c.refused = nil
	switch {
	case t == nil:
		c.refused = a2aerr.TaskNotFound(c.key.ID)
		return decision{}
	case t.State == task.Canceled:
		return decision{}
	case task.Terminal(t.State):
		c.refused = a2aerr.TaskNotCancelable(c.key.ID)
		return decision{}
	}
	d := revise(now, t)
	d.controlCanceled(c.metadata)
	d.status(task.Canceled, nil, nil)
	d.settle()
	return d.done()
}

func (s *Store) canceled(
	ctx context.Context, _ *taskstorev1.CancelTaskRequest, c *cancel,
) (*taskstorev1.CancelTaskResponse, error) {
	if c.refused != nil {
		return nil, c.refused
	}
	t, version, err := s.readTask(ctx, c.key.Scope, c.key.ID, s.detail(nil))
	if err != nil {
		return nil, err
	}
	return &taskstorev1.CancelTaskResponse{Task: t, Version: version}, nil
}
