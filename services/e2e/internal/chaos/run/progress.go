package run

import (
	"context"
	"fmt"
	"time"

	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/services/e2e/internal/chaos/journal"
)

const reportEvery = 10 * time.Second

// report prints a line now and then until ctx ends.
func (r *run) report(ctx context.Context) {
	begun := time.Now()
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		accepted, completed := progress(r.journal.Messages())
		fmt.Fprintf(r.Out, "%6s  %6d messages accepted  %6d seen completed  %3d of %d steps  %d faults\n",
			time.Since(begun).Round(time.Second), accepted, completed,
			len(r.nemesis.Interruptions()), len(r.Schedule), len(r.nemesis.Faults()))
	}
}

// progress counts messages that were accepted, and those whose sender was told
// that the task is completed.
func progress(messages []*journal.Message) (accepted, completed int) {
	for _, m := range messages {
		var yes, done bool
		for _, a := range m.Attempts {
			yes = yes || a.Task != nil || a.Reply != nil
			done = done || a.Reply != nil || a.Task.GetStatus().GetState() == task.Completed
		}
		if yes {
			accepted++
		}
		if done {
			completed++
		}
	}
	return accepted, completed
}
