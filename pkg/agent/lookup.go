package agent

import (
	"context"
	"errors"
	"fmt"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// lookup is what both kinds of handler can look up.
type lookup struct {
	memory        Memory
	tenant, agent string
	remembered    *Context
	// The message at hand; its sender decides what is visible.
	message func() *eventv1.UserMessage
}

// Context is the context's state and what went before in it.
func (l *lookup) Context() *Context { return l.remembered }

// FindTask reads a task of this agent that belongs to the sender; others are
// ErrTaskNotFound.
func (l *lookup) FindTask(ctx context.Context, id string) (*a2apb.Task, error) {
	answer, err := l.memory.GetTask(ctx, &taskstorev1.GetTaskRequest{
		Scope: l.scope(l.message().GetRequest().GetSubject()), TaskId: id,
	})
	if status.Code(err) == codes.NotFound {
		return nil, fmt.Errorf("%w: %q", ErrTaskNotFound, id)
	}
	if err != nil {
		return nil, fmt.Errorf("get task %q: %w", id, storeError(err))
	}
	return answer.GetTask(), nil
}

// References are the tasks that the message refers to (referenceTaskIds), in
// its order, without those that the sender may not see.
func (l *lookup) References(ctx context.Context) ([]*a2apb.Task, error) {
	var tasks []*a2apb.Task
	for _, id := range l.message().GetMessage().GetReferenceTaskIds() {
		t, err := l.FindTask(ctx, id)
		switch {
		case errors.Is(err, ErrTaskNotFound):
		case err != nil:
			return nil, err
		default:
			tasks = append(tasks, t)
		}
	}
	return tasks, nil
}

// remember gives access to a context of subject, as seen from a task in it.
func (l *lookup) remember(subject, contextID, taskID string) {
	l.remembered = NewContext(l.memory, l.scope(subject), contextID)
	l.remembered.taskID = taskID
}

func (l *lookup) scope(subject string) *taskstorev1.Scope {
	return &taskstorev1.Scope{Tenant: l.tenant, Agent: l.agent, Subject: subject, OwnedOnly: true}
}
