package check

import (
	"cmp"
	"slices"
	"time"

	"github.com/errandhq/errand/services/e2e/internal/chaos/journal"
)

// defaultStall is how long a turn may lie without a run: far more than a lease and the
// turns of the reaper take on a busy machine, far less than what would come
// by a time-out alone.
const defaultStall = 20 * time.Second

// lostClaim is what a claim of a turn costs whose executor or task store was
// disturbed before its handler began: a lease, the term of a reaper that died too,
// and the new delivery.
const lostClaim = 10 * time.Second

// needed is what no executor can begin without. Of all others there are two.
var needed = []string{"postgres", "nats"}

// idle is a time in which a turn had no run although it was due.
type idle struct {
	r *record
	// since is when the turn was accepted, or its last run ended or died.
	since, until time.Time
	// begun: a run ended it, and not the end of the task.
	begun bool
	// after is the run before; nil for the first.
	after *journal.Run
	// claims is how many were lost in it, by the attempt of the run that ended it.
	claims int
}

// due are the idle times of a task's turns: a later turn is accepted when the one
// before has asked, so that runs of the turn that is accepted first begin first.
func (c *checker) due(r *record) []idle {
	var accepted []int64
	for _, v := range r.accepted {
		accepted = append(accepted, v)
	}
	slices.Sort(accepted)
	turns := runsByTurn(r.runs)
	var found []idle
	for i, v := range accepted {
		var runs []journal.Run
		if i < len(turns) {
			runs = turns[i]
		}
		next := idle{r: r, since: r.committed(v)}
		for _, run := range runs {
			next.until, next.begun, next.claims = run.Begun, true, run.Attempt-1
			if next.after != nil {
				next.claims -= next.after.Attempt
			}
			found = append(found, next)
			next = idle{r: r, since: c.over(run), after: &run}
		}
		if i == len(accepted)-1 && (next.after == nil || !slices.Contains(settlements, next.after.Result)) {
			next.until = r.committed(int64(len(r.log)))
			found = append(found, next)
		}
	}
	return slices.DeleteFunc(found, func(i idle) bool { return i.since.IsZero() || i.until.Before(i.since) })
}

func runsByTurn(runs []journal.Run) [][]journal.Run {
	var turns [][]journal.Run
	for _, run := range runs {
		i := slices.IndexFunc(turns, func(t []journal.Run) bool { return t[0].Turn == run.Turn })
		if i < 0 {
			i, turns = len(turns), append(turns, nil)
		}
		turns[i] = append(turns[i], run)
	}
	return turns
}

// settlements are the results of runs that have settled their turn.
var settlements = []string{"completed", "asked", "failed"}

// over is when a run ended, or its process was killed; zero where neither is known.
func (c *checker) over(run journal.Run) time.Time {
	if !run.Ended.IsZero() {
		return run.Ended
	}
	for _, i := range c.during(run.Begun, farFuture, run.Process) {
		if i.Kind == "kill" {
			return i.Begun
		}
	}
	return time.Time{}
}

var farFuture = time.Unix(1<<40, 0)

// stalls finds turns that lay without a run for long, while nothing that they
// need was disturbed, and others that were accepted later were begun.
func (c *checker) stalls() {
	all, stall := c.report.numbers.idle, cmp.Or(c.Stall, defaultStall)
	for _, i := range all {
		if i.until.Sub(i.since) <= stall {
			continue
		}
		free := i.until.Sub(i.since) - covered(c.during(i.since.Add(-recovery), i.until, needed...), i.since, i.until)
		free -= time.Duration(c.excused(i)) * lostClaim
		if free > stall && overtaken(all, i, stall/2) {
			c.violationf(i.r, Stalled, "no run from %s for %s, of which %s without interruptions of Postgres and NATS or claims that were lost",
				clock(i.since), i.until.Sub(i.since).Round(time.Millisecond), free.Round(time.Millisecond))
		}
	}
}

// excused is how many lost claims have a reason.
func (c *checker) excused(i idle) int {
	return min(max(i.claims, 0), len(c.during(i.since, i.until, "executor", "taskstore")))
}

// overtaken tells whether a turn of the same agent that was due after i was begun
// long before i, so that i did not lie in a backlog.
func overtaken(all []idle, i idle, long time.Duration) bool {
	return slices.ContainsFunc(all, func(other idle) bool {
		return other.begun && other.r.agent == i.r.agent && other.since.After(i.since) && other.until.Before(i.until.Add(-long))
	})
}
