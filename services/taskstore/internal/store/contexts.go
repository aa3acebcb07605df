package store

import (
	"context"
	"errors"
	"time"

	"github.com/errandhq/errand/pkg/a2aerr"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

// ErrConflict refuses to replace a context's state that is not the one that the
// new state was derived from.
var ErrConflict = errors.New("the context has another revision")

// GetContext reads a context's state; a new context has none.
func (s *Store) GetContext(ctx context.Context, r *taskstorev1.GetContextRequest) (*taskstorev1.GetContextResponse, error) {
	key, err := s.contextKey(r.GetScope(), r.GetContextId())
	if err != nil {
		return nil, err
	}
	found, err := s.engine.ReadContext(ctx, key)
	if errors.Is(err, engine.ErrNotFound) {
		return &taskstorev1.GetContextResponse{}, nil
	}
	if err != nil {
		return nil, wrap("get context", err)
	}
	return &taskstorev1.GetContextResponse{State: found.State, Revision: found.Revision}, nil
}

// UpdateContexts replaces states of contexts, each if its revision is still the
// named one; otherwise ErrConflict.
func (s *Store) UpdateContexts(
	ctx context.Context, requests []*taskstorev1.UpdateContextRequest,
) []Result[*taskstorev1.UpdateContextResponse] {
	return write(ctx, s, "update context", requests, s.newContextUpdate, s.contextUpdated)
}

func (s *Store) contextKey(scope *taskstorev1.Scope, contextID string) (engine.ContextKey, error) {
	if err := s.checkScope(scope); err != nil {
		return engine.ContextKey{}, err
	}
	return engine.ContextKey{
		Tenant: scope.GetTenant(), Owner: scope.GetSubject(), Agent: scope.GetAgent(), ContextID: contextID,
	}, s.checkID("contextId", contextID)
}

type contextUpdate struct {
	key      engine.ContextKey
	state    []byte
	revision int64
	ttl      time.Duration

	conflict bool
}

func (s *Store) newContextUpdate(_ context.Context, r *taskstorev1.UpdateContextRequest) (*contextUpdate, error) {
	if len(r.GetState()) > s.Agents.Limits.ContextState {
		return nil, a2aerr.TooLarge("state", bytesAtMost(s.Agents.Limits.ContextState))
	}
	key, err := s.contextKey(r.GetScope(), r.GetContextId())
	return &contextUpdate{key: key, state: r.GetState(), revision: r.GetRevision(), ttl: s.ContextTTL}, err
}

func (c *contextUpdate) Keys() []any { return []any{c.key} }

func (c *contextUpdate) Size() int { return len(c.state) }

func (c *contextUpdate) selects(_ time.Time, sel *engine.Selection) {
	sel.Contexts = append(sel.Contexts, c.key)
}

func (c *contextUpdate) decide(now time.Time, rows *engine.Loaded) decision {
	next := engine.Context{ContextKey: c.key, CreatedAt: now}
	if have := rows.Contexts[c.key]; have != nil {
		next = *have
	}
	if c.conflict = next.Revision != c.revision; c.conflict {
		return decision{}
	}
	next.State, next.Revision = c.state, c.revision+1
	next.UpdatedAt, next.ExpiresAt = now, now.Add(c.ttl)
	return decision{changes: engine.Changes{PutContexts: []engine.Context{next}}}
}

func (s *Store) contextUpdated(
	_ context.Context, _ *taskstorev1.UpdateContextRequest, c *contextUpdate,
) (*taskstorev1.UpdateContextResponse, error) {
	if c.conflict {
		return nil, ErrConflict
	}
	return &taskstorev1.UpdateContextResponse{Revision: c.revision + 1}, nil
}
