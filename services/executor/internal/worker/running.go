package worker

import "sync"

// running makes the runs of one task in this process follow each other. A
// handler that has settled its turn may still be returning when the answer to
// its question is in and the next turn has been claimed.
type running struct {
	mu    sync.Mutex
	tasks map[string]chan struct{} // closed when the task's newest run ends
}

// enter begins a run. before is closed when the one before it has ended, and nil
// if there is none; leave ends this one.
func (r *running) enter(taskID string) (before <-chan struct{}, leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tasks == nil {
		r.tasks = map[string]chan struct{}{}
	}
	earlier, ended := r.tasks[taskID], make(chan struct{})
	r.tasks[taskID] = ended
	return earlier, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		close(ended)
		if r.tasks[taskID] == ended {
			delete(r.tasks, taskID)
		}
	}
}
