package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/errandhq/errand/services/taskstore/internal/store"
	"github.com/stretchr/testify/require"
)

// slow is an engine whose updates go on at the moment at which their callers leave.
type slow struct {
	engine.Engine
	begun chan struct{}
	left  <-chan struct{}
}

func (e *slow) Update(_ context.Context, _ engine.Selection, decide func(*engine.Loaded) (*engine.Changes, error)) error {
	e.begun <- struct{}{}
	<-e.left
	_, err := decide(&engine.Loaded{})
	return err
}

// The race detector is the judge: an answer must not look at what a transaction
// still decides on.
func TestCallersThatLeaveDoNotTouchWhatTheTransactionDecides(t *testing.T) {
	t.Parallel()
	lease := &taskstorev1.LeaseRef{TaskId: task.NewID(), LeaseEpoch: 1}
	for name, call := range map[string]func(context.Context, *store.Store) error{
		"write": func(ctx context.Context, s *store.Store) error {
			_, err := s.WriteEvents(ctx, &taskstorev1.WriteEventsRequest{
				Holder: "h", Writes: []*taskstorev1.TaskWrite{{Lease: lease}},
			})
			return err
		},
		"release": func(ctx context.Context, s *store.Store) error {
			_, err := s.ReleaseTasks(ctx, &taskstorev1.ReleaseTasksRequest{
				Holder: "h", Releases: []*taskstorev1.Release{{Lease: lease}},
			})
			return err
		},
		"expire": func(ctx context.Context, s *store.Store) error {
			return s.ExpireLeases(ctx, []engine.LeaseRef{{TaskID: lease.GetTaskId(), Epoch: 1}})[0].Err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, leave := context.WithCancel(t.Context())
			e := &slow{begun: make(chan struct{}), left: ctx.Done()}
			s := store.New(e, store.Options{
				Publisher: &ledger{outcomes: map[string]int{}}, Agents: &config.Agents{Limits: config.DefaultLimits()},
				Now: time.Now, NewID: task.NewID, ContextTTL: time.Hour, Parallel: 1,
			})
			answered := make(chan error)
			go func() { answered <- call(ctx, s) }()
			<-e.begun
			leave()
			s.Close()
			// What had begun is done nevertheless, and may even be in time.
			if err := <-answered; err != nil {
				require.ErrorIs(t, err, context.Canceled)
			}
		})
	}
}
