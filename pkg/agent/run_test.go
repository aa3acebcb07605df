package agent_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/pkg/agent/agenttest"
	"github.com/errandhq/errand/pkg/task"
	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// recorder is a lease whose answers a test chooses.
type recorder struct {
	agent.Store
	settle   func(agent.Settlement) error
	emit     func() error
	settled  []agent.Settlement
	released int
	failed   int
	newer    []*eventv1.UserMessage
	read     error
}

func (r *recorder) Emit(context.Context, *taskstorev1.TaskEvent) error {
	if r.emit != nil {
		return r.emit()
	}
	return nil
}
func (r *recorder) Flush(context.Context) error { return nil }
func (r *recorder) Appended() <-chan struct{}   { return nil }

func (r *recorder) Release(_ context.Context, _ time.Duration, failed bool) error {
	r.released++
	if failed {
		r.failed++
	}
	return nil
}

func (r *recorder) Settle(ctx context.Context, s agent.Settlement) error {
	if ctx.Err() != nil {
		return errors.New("settled on a context that has ended")
	}
	if r.settle != nil {
		if err := r.settle(s); err != nil {
			return err
		}
	}
	r.settled = append(r.settled, s)
	return nil
}

func (r *recorder) ListUserMessages(context.Context, *taskstorev1.ListUserMessagesRequest, ...grpc.CallOption) (*taskstorev1.ListUserMessagesResponse, error) {
	return &taskstorev1.ListUserMessagesResponse{Messages: r.newer}, r.read
}

func (r *recorder) GetContext(context.Context, *taskstorev1.GetContextRequest, ...grpc.CallOption) (*taskstorev1.GetContextResponse, error) {
	return nil, r.read
}

func run(ctx context.Context, r *recorder, handle agent.HandlerFunc) agent.Outcome {
	return agent.Claim{
		Agent: agent.Agent{Name: "test", Handler: handle}, Lease: r, Store: r,
		Proto: &taskstorev1.Claim{
			Task: &a2apb.Task{Id: task.NewID()}, Attempt: 1,
			Messages: []*eventv1.UserMessage{{Version: 1, Message: agenttest.Text("x")}},
		},
		Logger: slog.New(slog.DiscardHandler), MaxEventBytes: 1 << 20, Patience: 5 * time.Second,
	}.Run(ctx)
}

func state(s agent.Settlement) task.State { return s.Event.GetStatusUpdate().GetStatus().GetState() }

func TestRun_HandlerThatIgnoresItsEndIsLeftBehind(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cause error
		want  string
	}{
		"canceled":    {&agent.CanceledError{}, "canceled"},
		"lease lost":  {agent.ErrLeaseLost, "lost"},
		"draining":    {agent.ErrDraining, "released"},
		"max runtime": {agent.ErrMaxRuntime, "settled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				hang, r := make(chan struct{}), &recorder{}
				var late error
				ended := make(chan struct{})
				time.AfterFunc(time.Minute, func() { cancel(tc.cause) })
				begin := time.Now()
				outcome := run(ctx, r, func(ctx context.Context, t *agent.Task) error {
					defer close(ended)
					<-hang
					late = t.Complete(ctx)
					return nil
				})
				require.Equal(t, time.Minute+5*time.Second, time.Since(begin))
				require.Equal(t, tc.want, outcome.String())
				require.NotNil(t, outcome.Abandoned)
				select {
				case <-outcome.Abandoned:
					require.Fail(t, "it is still running")
				default:
				}
				close(hang)
				<-ended
				<-outcome.Abandoned
				require.ErrorIs(t, late, agent.ErrEnded)
			})
		})
	}
}

func TestRun_HandlerThatSettlesAfterItWasLeftBehindSettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		r := &recorder{settle: func(agent.Settlement) error {
			<-time.After(time.Minute) // a slow store
			return nil
		}}
		outcome := run(ctx, r, func(ctx context.Context, t *agent.Task) error {
			cancel(agent.ErrDraining)
			return t.Complete(ctx)
		})
		require.Equal(t, task.Completed, outcome.State)
		require.Zero(t, r.released)
	})
}

func TestRun_MaxRuntimeFailsTheTaskAndSaysSo(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	r := &recorder{}
	outcome := run(ctx, r, func(ctx context.Context, _ *agent.Task) error {
		cancel(agent.ErrMaxRuntime)
		<-ctx.Done()
		return ctx.Err()
	})
	require.Equal(t, task.Failed, outcome.State)
	require.Contains(t, r.settled[0].Event.GetStatusUpdate().GetStatus().GetMessage().GetParts()[0].GetText(), "in the time allowed")
}

func TestRun_PanicWhileDrainingStillFails(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	r := &recorder{}
	outcome := run(ctx, r, func(context.Context, *agent.Task) error {
		cancel(agent.ErrDraining)
		panic("x")
	})
	require.Equal(t, task.Failed, outcome.State)
	require.Zero(t, r.released)
}

func TestRun_FailureDoesNotWaitForMessagesThatNobodyWillHandle(t *testing.T) {
	t.Parallel()
	r := &recorder{newer: []*eventv1.UserMessage{{Version: 7, Message: agenttest.Text("y")}}}
	r.settle = func(s agent.Settlement) error {
		if s.HandledVersion < 7 {
			return agent.ErrNewerMessage
		}
		return nil
	}
	runs := 0
	outcome := run(t.Context(), r, func(context.Context, *agent.Task) error {
		runs++
		return errors.New("broken")
	})
	require.Equal(t, task.Failed, outcome.State)
	require.Equal(t, 1, runs)
	require.Equal(t, int64(7), r.settled[0].HandledVersion)
}

func TestRun_WhatTheStoreRefusesFailsTheTask(t *testing.T) {
	t.Parallel()
	r := &recorder{settle: func(s agent.Settlement) error {
		if state(s) != task.Failed {
			return agent.ErrTooLarge
		}
		return nil
	}}
	outcome := run(t.Context(), r, func(context.Context, *agent.Task) error { return nil })
	require.Equal(t, task.Failed, outcome.State)
	require.Contains(t, r.settled[0].Event.GetStatusUpdate().GetStatus().GetMessage().GetParts()[0].GetText(), "larger than allowed")
}

func TestRun_LostLeaseWinsOverWhatTheHandlerReturned(t *testing.T) {
	t.Parallel()
	r := &recorder{settle: func(agent.Settlement) error { return agent.ErrLeaseLost }}
	outcome := run(t.Context(), r, func(context.Context, *agent.Task) error { return errors.New("broken") })
	require.ErrorIs(t, outcome.Err, agent.ErrLeaseLost)
	require.Equal(t, "lost", outcome.String())
}

func TestRun_StoreThatIsAwayCostsAnAttemptAndNotTheTask(t *testing.T) {
	t.Parallel()
	for name, handle := range map[string]agent.HandlerFunc{
		"while the handler reads":          func(ctx context.Context, t *agent.Task) error { return t.Context().Get(ctx, &struct{}{}) },
		"while the handler settles":        func(ctx context.Context, t *agent.Task) error { return t.Complete(ctx) },
		"while the turn of one is settled": func(context.Context, *agent.Task) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &recorder{
				read:   status.Error(codes.Unavailable, "restarting"),
				settle: func(agent.Settlement) error { return agent.ErrNewerMessage },
			}
			outcome := run(t.Context(), r, handle)
			require.Equal(t, "released", outcome.String())
			require.Equal(t, 1, r.failed)
		})
	}
}
