package load

import (
	"context"
	"fmt"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/chaos/journal"
)

// call makes one attempt of an operation. It also returns the delay that a
// refusal asks for.
func (s *sender) call(ctx context.Context, op binding.Op, in proto.Message) (journal.Attempt, time.Duration) {
	ctx, cancel := hangUpAfter(ctx, answerWithin)
	defer cancel()
	way := s.way()
	a := journal.Attempt{Begun: time.Now(), Binding: way.Name()}
	answer, err := way.Call(ctx, op, in)
	a.Ended = time.Now()
	switch {
	case err != nil:
		a.Lost, a.Error = true, short(err)
		return a, 0
	case answer.Err != nil:
		a.Error, a.Retryable = reason(answer.Err), retryable(answer.Err)
		return a, answer.Err.Retry().GetRetryDelay().AsDuration()
	}
	switch result := answer.Result.(type) {
	case *a2apb.Task:
		a.Task = withoutHistory(result)
	case *a2apb.SendMessageResponse:
		a.Task, a.Reply = withoutHistory(result.GetTask()), result.GetMessage()
	}
	return a, 0
}

// hangUpAfter ends a call without a deadline that the server would be told.
func hangUpAfter(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(d, cancel)
	return ctx, func() {
		timer.Stop()
		cancel()
	}
}

// final tells whether an attempt was answered in a way that no other try changes.
func final(a journal.Attempt) bool { return !a.Lost && !a.Retryable }

// retryable is what a server says is worth another try.
func retryable(e *binding.Error) bool {
	switch e.Reason() {
	case "UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELED":
		return true
	default:
		return e.Retry() != nil
	}
}

// reason is never empty.
func reason(e *binding.Error) string {
	if e.Reason() != "" {
		return e.Reason()
	}
	return fmt.Sprintf("JSON-RPC %d, HTTP %d, gRPC %s: %.100s", e.JSONRPC, e.HTTP, e.GRPC, e.Message)
}

func short(err error) string { return fmt.Sprintf("%.200v", err) }

// withoutHistory: the checker finds messages in the store.
func withoutHistory(t *a2apb.Task) *a2apb.Task {
	if t != nil {
		t.History = nil
	}
	return t
}
