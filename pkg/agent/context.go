package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Context is what an agent remembers from one task to the next: a small state
// that outlives tasks and processes, and the turns before this one. Each owner
// has contexts of their own.
type Context struct {
	memory Memory
	scope  *taskstorev1.Scope
	id     string
	// Left out of the turns.
	taskID string
}

// NewContext gives access to a context of scope's subject. Handlers get theirs
// from [Task.Context].
func NewContext(memory Memory, scope *taskstorev1.Scope, id string) *Context {
	return &Context{memory: memory, scope: scope, id: id}
}

// ID is the context's id.
func (c *Context) ID() string { return c.id }

// Get decodes the state (JSON) into v, which stays as it is when nothing was
// stored yet.
func (c *Context) Get(ctx context.Context, v any) error {
	state, _, err := c.read(ctx)
	if err != nil || len(state) == 0 {
		return err
	}
	return c.decode(state, v)
}

// Turns are the latest turns of the context before this one, newest first, at
// most limit: tasks with their history and artifacts, and direct Messages.
func (c *Context) Turns(ctx context.Context, limit int) ([]*taskstorev1.Turn, error) {
	answer, err := c.memory.ListTurns(ctx, &taskstorev1.ListTurnsRequest{
		Scope: c.scope, ContextId: c.id, Limit: int32(limit) + 1, //nolint:gosec // the store bounds it
	})
	if err != nil {
		return nil, fmt.Errorf("list turns of context %s: %w", c.id, storeError(err))
	}
	turns := make([]*taskstorev1.Turn, 0, limit)
	for _, turn := range answer.GetTurns() {
		if len(turn.GetTask().GetId()) > 0 && turn.GetTask().GetId() == c.taskID {
			continue
		}
		if len(turns) < limit {
			turns = append(turns, turn)
		}
	}
	return turns, nil
}

// conflicts is how often an update begins anew before it gives up.
const conflicts = 20

// UpdateContext changes the state of c: change gets it decoded from JSON (the
// zero T when nothing was stored yet) and is called again when another task
// changed it in between. An error of change leaves the state as it was.
func UpdateContext[T any](ctx context.Context, c *Context, change func(*T) error) error {
	for n := range conflicts {
		err := updateOnce(ctx, c, change)
		if status.Code(err) != codes.Aborted {
			return err
		}
		if err := pause(ctx, rand.N(time.Duration(n+1)*time.Millisecond)); err != nil {
			return err
		}
	}
	return fmt.Errorf("update context %s: %w", c.id, ErrConflict)
}

func updateOnce[T any](ctx context.Context, c *Context, change func(*T) error) error {
	state, revision, err := c.read(ctx)
	if err != nil {
		return err
	}
	var v T
	if len(state) > 0 {
		if err := c.decode(state, &v); err != nil {
			return err
		}
	}
	if err := change(&v); err != nil {
		return err
	}
	if state, err = json.Marshal(v); err != nil {
		return fmt.Errorf("encode state of context %s: %w", c.id, err)
	}
	_, err = c.memory.UpdateContext(ctx, &taskstorev1.UpdateContextRequest{
		Scope: c.scope, ContextId: c.id, State: state, Revision: revision,
	})
	if err != nil {
		return fmt.Errorf("update context %s: %w", c.id, storeError(err))
	}
	return nil
}

func (c *Context) read(ctx context.Context) (state []byte, revision int64, err error) {
	answer, err := c.memory.GetContext(ctx, &taskstorev1.GetContextRequest{Scope: c.scope, ContextId: c.id})
	if err != nil {
		return nil, 0, fmt.Errorf("get context %s: %w", c.id, storeError(err))
	}
	return answer.GetState(), answer.GetRevision(), nil
}

func (c *Context) decode(state []byte, v any) error {
	if err := json.Unmarshal(state, v); err != nil {
		return fmt.Errorf("decode state of context %s: %w", c.id, err)
	}
	return nil
}

// pause lets others finish.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
