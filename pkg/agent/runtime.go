package agent

import (
	"context"
	"time"

	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"google.golang.org/grpc"
)

// Lease is an executor's hold on one claimed task, and the only way to change
// it. Executors implement it; authors of agents meet it through [Task] alone.
//
// Methods fail with ErrLeaseLost, ErrCanceled or ErrEnded once the hold is gone.
type Lease interface {
	// Emit takes an event for writing and returns, at the latest when there is
	// room for it. Events commit in the order in which they were taken, each
	// with a version of its own. What the store refuses of them (ErrTooLarge,
	// ErrRefused) is returned by later calls; a settlement in FAILED is then
	// still accepted.
	Emit(ctx context.Context, event *taskstorev1.TaskEvent) error
	// Flush waits until what was emitted so far is committed.
	Flush(ctx context.Context) error
	// Settle commits what was emitted and then the event that ends the turn.
	// With ErrNewerMessage the former is committed and the lease goes on.
	Settle(ctx context.Context, s Settlement) error
	// Release commits what was emitted and gives the task back, to be claimed
	// again after delay. failed counts the claim as an attempt.
	Release(ctx context.Context, delay time.Duration, failed bool) error
	// Appended receives when the store may have a newer user message.
	Appended() <-chan struct{}
}

// Settlement ends a turn.
type Settlement struct {
	// A status update to a terminal or interrupted state.
	Event *taskstorev1.TaskEvent
	// The version of the last user message that was handed to the handler.
	HandledVersion int64
	// With AUTH_REQUIRED: what resumes the task; may be empty.
	Grant string
}

// Store is what runs read of the task store, and the state of contexts that
// they write there. A taskstorev1.TaskStoreServiceClient is one.
type Store interface {
	ListUserMessages(ctx context.Context, r *taskstorev1.ListUserMessagesRequest, opts ...grpc.CallOption) (*taskstorev1.ListUserMessagesResponse, error)
	Memory
}

// Memory is what an agent can look up beside the message at hand.
type Memory interface {
	GetTask(ctx context.Context, r *taskstorev1.GetTaskRequest, opts ...grpc.CallOption) (*taskstorev1.GetTaskResponse, error)
	GetContext(ctx context.Context, r *taskstorev1.GetContextRequest, opts ...grpc.CallOption) (*taskstorev1.GetContextResponse, error)
	UpdateContext(ctx context.Context, r *taskstorev1.UpdateContextRequest, opts ...grpc.CallOption) (*taskstorev1.UpdateContextResponse, error)
	ListTurns(ctx context.Context, r *taskstorev1.ListTurnsRequest, opts ...grpc.CallOption) (*taskstorev1.ListTurnsResponse, error)
}

// newest is the version of the last message of a list that is oldest first.
func newest(messages []*eventv1.UserMessage) int64 {
	if len(messages) == 0 {
		return 0
	}
	return messages[len(messages)-1].GetVersion()
}
