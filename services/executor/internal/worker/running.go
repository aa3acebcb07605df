package worker

import "sync"

// running makes the runs of one task in this process follow each other. A
// handler that has settled its turn may still be returning when the answer to
// its question is in and the next turn has been claimed.
type running struct {
	mu    sync.Mutex
	tasks map[string]run // the newest of each task
}

type run struct {
	epoch int64
	ended chan struct{}
}

// enter begins a run. before is closed when the one before it has ended, and nil
// if there is none; leave ends this one.
func (r *running) enter(taskID string, epoch int64) (before <-chan struct{}, leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tasks == nil {
		r.tasks = map[string]run{}
	}
	earlier, this := r.tasks[taskID], run{epoch: epoch, ended: make(chan struct{})}
	r.tasks[taskID] = this
	return earlier.ended, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		close(this.ended)
		if r.tasks[taskID] == this {
			delete(r.tasks, taskID)
		}
	}
}

// knows tells whether a claim has a run, or a later claim of its task has.
func (r *running) knows(taskID string, epoch int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tasks[taskID].epoch >= epoch
}
