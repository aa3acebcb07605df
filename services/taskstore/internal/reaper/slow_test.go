package reaper

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/stretchr/testify/require"
)

// slowQueues has many queues, each of which takes a second to look at.
type slowQueues struct {
	engine.Engine

	seen map[engine.Queue]bool
}

func (s *slowQueues) Queues(context.Context) ([]engine.Queue, error) {
	queues := make([]engine.Queue, 20)
	for i := range queues {
		queues[i] = engine.Queue{Agent: agent, Tenant: fmt.Sprintf("tenant-%02d", i)}
	}
	return queues, nil
}

func (s *slowQueues) OldestQueued(_ context.Context, q engine.Queue, _ time.Time, _ int) ([]string, error) {
	time.Sleep(time.Second)
	s.seen[q] = true
	return nil, nil
}

func TestSlowQueuesHoldUpNoOtherWorkAndAreAllLookedAt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		queues := &slowQueues{seen: map[engine.Queue]bool{}}
		r := &Reaper{Options: Options{Engine: queues, Now: time.Now}}
		for range 20 {
			began := time.Now()
			_, err := r.enqueueLost(t.Context())
			require.NoError(t, err)
			require.LessOrEqual(t, time.Since(began), lostTime+time.Second)
		}
		require.Len(t, queues.seen, 20)
	})
}
