package load_test

import (
	"context"
	"errors"
	"fmt"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/services/e2e/internal/binding"
)

// follower follows one task over as many streams as it takes.
type follower struct {
	way binding.Binding
	id  string
	// live gets a value whenever a stream has begun; nil for nobody.
	live chan<- struct{}

	streams int
	last    string
	events  []binding.Event
}

// follow returns when the task is terminal, or with what nothing can be done about.
func (f *follower) follow(ctx context.Context) error {
	for {
		over, err := f.connect(ctx)
		var refusal *binding.Error
		switch {
		case over:
			return nil
		case errors.As(err, &refusal) && !retryable(refusal):
			return fmt.Errorf("task %s over %s: %w", f.id, f.way.Name(), refusal)
		}
		if !pause(ctx) {
			return fmt.Errorf("task %s over %s after %d streams: %w: %w", f.id, f.way.Name(), f.streams, context.Cause(ctx), err)
		}
	}
}

// connect reads one stream to its end. Over HTTP it goes on where the last one ended.
func (f *follower) connect(ctx context.Context) (over bool, err error) {
	resumed := binding.With("Last-Event-ID")
	if f.last != "" {
		resumed = binding.With("Last-Event-ID", f.last)
	}
	stream, refusal, err := f.way.Open(ctx, binding.SubscribeToTask, &a2apb.SubscribeToTaskRequest{Id: f.id}, resumed)
	switch {
	case err != nil:
		return false, err
	case refusal != nil:
		return false, refusal.Err
	}
	defer stream.Close()
	f.streams++
	for first := true; ; first = false {
		e, err := stream.Next()
		if err != nil {
			return false, err
		}
		if first && f.live != nil {
			f.live <- struct{}{}
		}
		f.events, f.last = append(f.events, e), e.ID
		if terminal(e) {
			return true, nil
		}
	}
}

func terminal(e binding.Event) bool {
	return task.Terminal(e.GetTask().GetStatus().GetState()) || task.Terminal(e.GetStatusUpdate().GetStatus().GetState())
}
