package store

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"time"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

// ResumeTasks redeems grants of tasks that are parked in AUTH_REQUIRED. Each
// grant works once.
func (s *Store) ResumeTasks(
	ctx context.Context, requests []*taskstorev1.ResumeTaskRequest,
) []Result[*taskstorev1.ResumeTaskResponse] {
	return write(ctx, s, "resume task", requests, s.newResume, s.resumed)
}

type resume struct {
	key       engine.TaskKey
	grantHash []byte

	refused error
	version int64
}

func (s *Store) newResume(_ context.Context, r *taskstorev1.ResumeTaskRequest) (*resume, error) {
	scope, err := s.scope(&taskstorev1.Scope{Tenant: r.GetTenant(), Agent: r.GetAgent()})
	return &resume{key: engine.TaskKey{Scope: scope, ID: r.GetTaskId()}, grantHash: hashGrant(r.GetGrant())}, err
}

func (c *resume) Keys() []any { return []any{c.key.ID} }

func (c *resume) Size() int { return len(c.grantHash) }

func (c *resume) selects(_ time.Time, sel *engine.Selection) { sel.Tasks = append(sel.Tasks, c.key) }

func (c *resume) decide(now time.Time, rows *engine.Loaded) decision {
	t := rows.Tasks[c.key.ID]
	c.refused = nil
	switch {
	case t == nil:
		c.refused = a2aerr.TaskNotFound(c.key.ID)
		return decision{}
	case t.State != task.AuthRequired:
		c.refused = a2aerr.UnsupportedOperation("the task does not wait for authorization")
		return decision{}
	case t.GrantHash == nil || subtle.ConstantTimeCompare(t.GrantHash, c.grantHash) == 0:
		c.refused = a2aerr.PermissionDenied("the grant is not the one that the task waits for")
		return decision{}
	}
	d := revise(now, t)
	d.wake()
	d.queue()
	c.version = d.row.Version
	return d.done()
}

func (s *Store) resumed(
	_ context.Context, _ *taskstorev1.ResumeTaskRequest, c *resume,
) (*taskstorev1.ResumeTaskResponse, error) {
	if c.refused != nil {
		return nil, c.refused
	}
	return &taskstorev1.ResumeTaskResponse{Version: c.version}, nil
}

// hashGrant is what is kept of a grant: who reads the database can't resume a task.
func hashGrant(grant string) []byte {
	sum := sha256.Sum256([]byte(grant))
	return sum[:]
}
