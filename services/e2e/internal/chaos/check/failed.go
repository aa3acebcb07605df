package check

import (
	"time"

	"github.com/errandhq/errand/services/e2e/internal/chaos/journal"
)

// behind is what each turn needs beside its executor.
var behind = []string{"postgres", "nats", "taskstore", "gateway", "notifier"}

// failed: a task fails on purpose, or because its last turn was interrupted as
// often as a turn may be.
func (c *checker) failed(r *record) {
	accepted, text := r.turn(c.book)
	if onPurpose(text) {
		return
	}
	end := r.committed(int64(len(r.log)))
	if n := c.interruptions(r, accepted, end); n < c.MaxAttempts {
		c.violationf(r, Failed, "failed although its turn was interrupted %d times of %d: %v", n, c.MaxAttempts, r.task.GetStatus().GetMessage())
	}
}

// interruptions counts what may have ended a run between two times: the cluster
// behind all of them, and of the executors those that ran it. An executor that
// dies between its claim and the begin of the handler leaves no run, so that the
// attempts that are missing may be any executor's.
func (c *checker) interruptions(r *record, accepted, end time.Time) int {
	count := len(c.during(accepted.Add(-c.Lease), end, behind...))
	attempts := map[int]bool{}
	highest := 0
	struck := map[journal.Interruption]bool{}
	for _, run := range r.runs {
		if run.Begun.Before(accepted.Add(-time.Second)) {
			continue
		}
		attempts[run.Attempt], highest = true, max(highest, run.Attempt)
		until := end
		if !run.Ended.IsZero() {
			until = run.Ended.Add(c.Lease)
		}
		for _, i := range c.during(run.Begun.Add(-c.Lease), until, run.Process) {
			struck[i] = true
		}
	}
	others := 0
	for _, i := range c.during(accepted.Add(-c.Lease), end, "executor") {
		if !struck[i] {
			others++
		}
	}
	missing := max(highest, c.MaxAttempts) - len(attempts)
	return count + len(struck) + min(others, missing)
}
