package agent

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

// Why a handler's context ended before the handler did: [context.Cause] of it
// is one of these, for ErrCanceled a *[CanceledError]. Methods of [Task] return
// them too.
var (
	// ErrCanceled: the sender canceled the task, which is final.
	ErrCanceled = errors.New("the task was canceled")
	// ErrLeaseLost: another executor may hold the task by now; nothing that
	// this run writes is accepted any more.
	ErrLeaseLost = errors.New("the lease on the task was lost")
	// ErrDraining: the executor is stopping. The turn may still be settled;
	// otherwise the task is given back and runs elsewhere, without this run
	// counting as an attempt.
	ErrDraining = errors.New("the executor is stopping")
	// ErrMaxRuntime: the turn, over all its attempts, took longer than the
	// agent's max_runtime. The task fails.
	ErrMaxRuntime = errors.New("the turn took longer than allowed")
)

var (
	// ErrNewerMessage refuses to settle a turn because the sender said more in
	// the meantime. Take it with [Task.Next] and go on, or return: the handler
	// is then called again with it.
	ErrNewerMessage = errors.New("a newer message is to be handled first")
	// ErrEnded refuses a write after the turn was settled, the task given back,
	// or the handler had returned.
	ErrEnded = errors.New("the run has ended")
	// ErrTooLarge refuses an event, or more artifacts, than the limits allow.
	// The task fails and says so.
	ErrTooLarge = errors.New("larger than allowed")
	// ErrRefused is a write that the task store does not allow at all. The task
	// fails.
	ErrRefused = errors.New("refused by the task store")
	// ErrInvalid is a write without a meaning: a message or artifact without
	// parts, a part without content.
	ErrInvalid = errors.New("invalid")
	// ErrTaskNotFound is about a task that doesn't exist for the sender.
	ErrTaskNotFound = errors.New("task not found")
	// ErrConflict gives up on a context whose state others change again and again.
	ErrConflict = errors.New("context state was changed by others")
	// ErrUnavailable is a task store that can't be reached now. A handler of a
	// task that returns it is run again, which counts as an attempt.
	ErrUnavailable = errors.New("the task store can't be reached")
	// ErrReplied refuses a second answer to one message.
	ErrReplied = errors.New("the message has been answered")
)

// CanceledError is the cause of a handler's end when the task was canceled; it
// is an [ErrCanceled].
type CanceledError struct {
	// Metadata is that of the CancelTask request; nil if it had none or didn't
	// arrive.
	Metadata *structpb.Struct
}

func (*CanceledError) Error() string { return ErrCanceled.Error() }

// Is makes errors.Is(err, ErrCanceled) true.
func (*CanceledError) Is(target error) bool { return target == ErrCanceled }

// storeError marks an error of the task store that says nothing about the call.
func storeError(err error) error {
	if status.Code(err) == codes.Unavailable {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}
