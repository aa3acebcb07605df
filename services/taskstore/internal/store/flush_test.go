package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/errandhq/errand/services/taskstore/internal/store"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// failing is an engine whose updates fail after they were decided on.
type failing struct {
	engine.Engine
	err     error
	decides int

	mu      sync.Mutex
	updates []int
}

func (e *failing) Update(
	_ context.Context, sel engine.Selection, decide func(*engine.Loaded) (*engine.Changes, error),
) error {
	e.mu.Lock()
	e.updates = append(e.updates, len(sel.Reserve))
	e.mu.Unlock()
	for range e.decides {
		loaded := &engine.Loaded{Reserved: map[engine.DedupeKey]bool{}}
		for _, d := range sel.Reserve {
			loaded.Reserved[d.DedupeKey] = true
		}
		if _, err := decide(loaded); err != nil {
			return err
		}
	}
	return e.err
}

// ledger counts how reservations were settled.
type ledger struct {
	mu       sync.Mutex
	next     int64
	outcomes map[string]int
}

func (l *ledger) Reserve(n int) store.Reservation {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.next + 1
	l.next += int64(n)
	return entry{l, first}
}

type entry struct {
	*ledger
	first int64
}

func (e entry) Publisher() string                      { return "p" }
func (e entry) First() int64                           { return e.first }
func (e entry) Commit(context.Context, []store.Notice) { e.settle("commit") }
func (e entry) Abort()                                 { e.settle("abort") }
func (e entry) Doubt()                                 { e.settle("doubt") }

func (e entry) settle(how string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.outcomes[how]++
}

func acceptThree(t *testing.T, e *failing) (*ledger, []store.Result[*taskstorev1.AcceptMessageResponse]) {
	t.Helper()
	l := &ledger{outcomes: map[string]int{}}
	s := store.New(e, store.Options{
		Publisher: l, Agents: &config.Agents{Limits: config.DefaultLimits()}, CursorKey: task.CursorKey("0123456789abcdef"),
		Now: time.Now, NewID: task.NewID, ContextTTL: time.Hour, Parallel: 1,
	})
	t.Cleanup(s.Close)
	requests := make([]*taskstorev1.AcceptMessageRequest, 3)
	for i := range requests {
		m := &a2apb.Message{MessageId: fmt.Sprint("m", i)}
		requests[i] = &taskstorev1.AcceptMessageRequest{
			Scope:   &taskstorev1.Scope{Tenant: "t", Agent: "a", Subject: "s"},
			Message: m, NewTaskId: task.NewID(), NewContextId: "c", Dedupe: true, Fingerprint: task.Fingerprint(m),
		}
	}
	return l, s.AcceptMessages(t.Context(), requests)
}

func TestNumbersOfEventsAreSettledWhateverBecomesOfTheTransaction(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		engine   *failing
		updates  []int
		outcomes map[string]int
	}{
		"it commits": {
			&failing{decides: 1}, []int{3}, map[string]int{"commit": 1},
		},
		"it commits at the third attempt": {
			&failing{decides: 3}, []int{3}, map[string]int{"abort": 2, "commit": 1},
		},
		"nobody knows whether it committed": {
			&failing{decides: 1, err: fmt.Errorf("commit: %w", engine.ErrInDoubt)}, []int{3}, map[string]int{"doubt": 1},
		},
		"it took too long": {
			&failing{decides: 1, err: context.DeadlineExceeded}, []int{3}, map[string]int{"doubt": 1},
		},
		"the database went away": {
			&failing{decides: 1, err: engine.ErrUnavailable}, []int{3}, map[string]int{"abort": 1},
		},
		"the database was away": {
			&failing{err: engine.ErrUnavailable}, []int{3}, map[string]int{},
		},
		"a row is locked": {
			&failing{decides: 1, err: engine.ErrLocked}, []int{3, 1, 1, 1}, map[string]int{"abort": 4},
		},
		"the database refused a row": {
			&failing{decides: 1, err: broken}, []int{3, 1, 1, 1}, map[string]int{"abort": 4},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, results := acceptThree(t, c.engine)
			require.Equal(t, c.updates, c.engine.updates)
			require.Equal(t, c.outcomes, l.outcomes)
			for _, r := range results {
				if c.engine.err == nil {
					require.NoError(t, r.Err)
				} else {
					require.ErrorIs(t, r.Err, c.engine.err)
				}
			}
		})
	}
}
