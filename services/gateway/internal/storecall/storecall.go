// Package storecall bounds how long a gateway waits for a task store. One that
// hangs, because its process is stopped or the network swallows what is sent, says
// nothing, so the call itself must end.
package storecall

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"

	"github.com/errandhq/errand/pkg/a2aerr"
)

// retryPause is what a sender should wait whose request got no answer.
const retryPause = time.Second

// Conn is a connection whose unary calls end in time. A call that may come twice is
// sent again halfway, which reaches another task store where there is one.
type Conn struct {
	grpc.ClientConnInterface

	// Limit is how long a call may take in all.
	Limit time.Duration
}

// errNoAnswer is why a call of ours was given up.
var errNoAnswer = errors.New("no answer in time")

// Invoke makes a unary call. It fails as UNAVAILABLE when there is no answer in
// time; a deadline of ctx keeps its own error.
func (c Conn) Invoke(ctx context.Context, method string, in, out any, opts ...grpc.CallOption) error {
	attempts := 1
	if repeatable(method, in) {
		attempts = 2
	}
	for range attempts {
		err := c.attempt(ctx, c.Limit/time.Duration(attempts), method, in, out, opts)
		if !errors.Is(err, errNoAnswer) {
			return err
		}
	}
	return fmt.Errorf("%s: %w: %w", method, errNoAnswer, a2aerr.Unavailable("the task store gave no answer in time", retryPause))
}

func (c Conn) attempt(ctx context.Context, limit time.Duration, method string, in, out any, opts []grpc.CallOption) error {
	limited, cancel := context.WithTimeoutCause(ctx, limit, errNoAnswer)
	defer cancel()
	err := c.ClientConnInterface.Invoke(limited, method, in, out, opts...)
	// The store counts the same time, and may be the first to find it over.
	if err != nil && ctx.Err() == nil && (limited.Err() != nil || status.Code(err) == codes.DeadlineExceeded) {
		return errNoAnswer
	}
	return err //nolint:wrapcheck // a status has to stay one
}

// repeatable tells whether a call changes nothing when it comes twice.
func repeatable(method string, in any) bool {
	if once, ok := in.(interface{ GetDedupe() bool }); ok {
		return once.GetDedupe()
	}
	switch method {
	case taskstorev1.TaskStoreService_CancelTask_FullMethodName,
		taskstorev1.TaskStoreService_FindMessage_FullMethodName,
		taskstorev1.TaskStoreService_GetTask_FullMethodName,
		taskstorev1.TaskStoreService_ListTasks_FullMethodName,
		taskstorev1.TaskStoreService_ListEvents_FullMethodName,
		taskstorev1.TaskStoreService_GetVersions_FullMethodName,
		taskstorev1.TaskStoreService_GetInfo_FullMethodName:
		return true
	}
	return false
}
