package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"google.golang.org/grpc"
)

// ErrInvalidGrant is a text that isn't a grant. Whether a grant is still good
// only the task store knows.
var ErrInvalidGrant = errors.New("not a grant")

// NewGrant makes a secret that resumes this task once, for [Task.AskAuth]. It
// fits into a URL as it is, for instance as the state of an OAuth flow (RFC
// 6749 §4.1.1) whose end the agent's own call-back sees. The sender must not
// get it in any other way than to hand it back.
func (t *Task) NewGrant() string {
	return strings.Join([]string{t.Tenant(), t.c.Agent.Name, t.ID(), rand.Text()}, ".")
}

// Resumer redeems grants. A taskstorev1.TaskStoreServiceClient is one.
type Resumer interface {
	ResumeTask(ctx context.Context, r *taskstorev1.ResumeTaskRequest, opts ...grpc.CallOption) (*taskstorev1.ResumeTaskResponse, error)
}

// Resume redeems a grant: the task that waits for it goes on. A grant works
// once, and only while its task waits.
func Resume(ctx context.Context, store Resumer, grant string) error {
	// Tenants, agents and task ids have no dots.
	fields := strings.Split(grant, ".")
	if len(fields) != 4 {
		return ErrInvalidGrant
	}
	_, err := store.ResumeTask(ctx, &taskstorev1.ResumeTaskRequest{
		Tenant: fields[0], Agent: fields[1], TaskId: fields[2], Grant: grant,
	})
	if err != nil {
		return fmt.Errorf("resume task %s: %w", fields[2], err)
	}
	return nil
}
