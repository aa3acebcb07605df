package load

import (
	"sync"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/chaos/journal"
)

// read asks for a task until it is told; nil if it is refused, or the time is up.
func (s *sender) read(id string) *a2apb.Task {
	in := &a2apb.GetTaskRequest{Id: id, HistoryLength: new(int32(0))}
	for failures := 0; ; failures++ {
		a, delay := s.call(s.ctx, binding.GetTask, in)
		if final(a) {
			s.journal.AddRead(&journal.Read{TaskID: id, Begun: a.Begun, At: a.Ended, Task: a.Task, Error: a.Error})
			return a.Task
		}
		if !s.again(failures, delay) {
			return nil
		}
	}
}

// poll reads, at growing intervals, until the task is in a state that counts;
// the state is unspecified if that doesn't happen.
func (s *sender) poll(id string, counts func(a2apb.TaskState) bool) a2apb.TaskState {
	const growth = 1.5
	for interval := 50 * time.Millisecond; ; interval = min(slowest, time.Duration(growth*float64(interval))) {
		t := s.read(id)
		state := t.GetStatus().GetState()
		if t == nil || counts(state) || !s.pause(interval) {
			return state
		}
	}
}

// cancel cancels a task: once, twice, or twice at once.
func (s *sender) cancel(id string) {
	var others sync.WaitGroup
	defer others.Wait()
	if s.chance(0.2) {
		twin := s.fork()
		others.Go(func() { twin.cancelOnce(id) })
	}
	s.cancelOnce(id)
	if s.chance(0.2) {
		s.cancelOnce(id)
	}
}

func (s *sender) cancelOnce(id string) {
	for failures := 0; ; failures++ {
		a, delay := s.call(s.ctx, binding.CancelTask, &a2apb.CancelTaskRequest{Id: id})
		s.journal.AddCancel(&journal.Cancel{TaskID: id, Attempt: a})
		if final(a) || !s.again(failures, delay) {
			return
		}
	}
}

func settled(state a2apb.TaskState) bool { return task.Settled(state) }

func begun(state a2apb.TaskState) bool { return state != task.Submitted }
