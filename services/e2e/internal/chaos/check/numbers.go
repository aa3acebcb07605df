package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/services/e2e/internal/chaos/journal"
)

// numbers are counted while tasks are read.
type numbers struct {
	states           map[a2apb.TaskState]int
	meant, fulfilled int
	toEnd            []time.Duration
}

func newNumbers() *numbers { return &numbers{states: map[a2apb.TaskState]int{}} }

func (n *numbers) task(r *record) {
	state := r.task.GetStatus().GetState()
	n.states[state]++
	if r.meant() {
		n.meant++
		if state == task.Completed {
			n.fulfilled++
		}
	}
	if state == task.Completed {
		n.toEnd = append(n.toEnd, r.committed(int64(len(r.log))).Sub(r.committed(1)))
	}
}

// measure makes the summary.
func (c *checker) measure() {
	n := c.report.numbers
	c.countMessages()
	for state, count := range sorted(n.states) {
		c.row("tasks "+strings.ToLower(strings.TrimPrefix(state.String(), "TASK_STATE_")), count)
	}
	c.row("meant to complete", fmt.Sprintf("%d of %d", n.fulfilled, n.meant))
	c.countStreams()
	c.countCancels()
	done := map[string]int{}
	for _, i := range c.Interruptions {
		done[i.Kind+" "+strings.TrimRight(i.Target, "-0123456789")]++
	}
	for what, count := range sorted(done) {
		c.row(what, count)
	}
	c.row("kills, pauses and others", len(c.Interruptions))
	c.countRuns()
	c.row("created to completed", spread(n.toEnd))
}

func (c *checker) row(name string, value any) {
	c.report.Summary = append(c.report.Summary, Row{name, fmt.Sprint(value)})
}

func (c *checker) countMessages() {
	var accepted, attempts, repeated, lost, retried, replies int
	var latencies []time.Duration
	for _, m := range c.book.messages {
		answers := 0
		attempts += len(m.Attempts)
		for _, a := range m.Attempts {
			switch {
			case a.Lost:
				lost++
			case a.Retryable:
				retried++
			case a.Task != nil || a.Reply != nil:
				answers++
				if !a.Blocking {
					latencies = append(latencies, a.Ended.Sub(a.Begun))
				}
			}
			if a.Reply != nil {
				replies++
			}
		}
		accepted += min(answers, 1)
		repeated += max(answers-1, 0)
	}
	c.row("messages sent", len(c.book.messages))
	c.row("messages accepted", accepted)
	c.row("sends", attempts)
	c.row("answered again", repeated)
	c.row("lost answers", lost)
	c.row("told to try again", retried)
	c.row("direct answers", replies)
	c.row("acceptance", spread(latencies))
}

func (c *checker) countStreams() {
	var connections, cuts, resumed, resyncs, refused int
	streams := c.Journal.Streams()
	for _, s := range streams {
		connections += len(s.Connections)
		for _, connection := range s.Connections {
			if !connection.Ended && connection.Error == "" {
				cuts++
			}
			if connection.Resumed > 0 {
				resumed++
			}
			if connection.Error != "" {
				refused++
			}
			for _, e := range connection.Events {
				if e.Resync {
					resyncs++
				}
			}
		}
	}
	c.row("streams", len(streams))
	c.row("connections", connections)
	c.row("cut by the reader", cuts)
	c.row("broken or refused", refused)
	c.row("resumed by Last-Event-ID", resumed)
	c.row("resyncs", resyncs)
}

func (c *checker) countCancels() {
	var confirmed, refused int
	for _, a := range c.Journal.Cancels() {
		switch {
		case a.Lost || a.Retryable:
		case a.Task != nil:
			confirmed++
		default:
			refused++
		}
	}
	c.row("cancels confirmed", confirmed)
	c.row("cancels too late", refused)
}

// countRuns also measures how long a turn lay still after its run died.
func (c *checker) countRuns() {
	var again int
	var takeOvers []time.Duration
	turns := map[string]journal.Run{}
	for _, run := range slices.SortedFunc(slices.Values(c.Runs), func(a, b journal.Run) int { return a.Begun.Compare(b.Begun) }) {
		if run.Attempt > 1 {
			again++
		}
		before, has := turns[run.Turn]
		if has && before.Ended.IsZero() {
			for _, i := range c.during(before.Begun, run.Begun, before.Process) {
				if i.Kind == "kill" {
					takeOvers = append(takeOvers, run.Begun.Sub(i.Begun))
					break
				}
			}
		}
		turns[run.Turn] = run
	}
	c.row("runs", len(c.Runs))
	c.row("runs after a lost one", again)
	c.row("taken over after a kill", spread(takeOvers))
}

// spread is the median and what only one in a hundred exceeds.
func spread(d []time.Duration) string {
	if len(d) == 0 {
		return "none"
	}
	slices.Sort(d)
	const round = 100 * time.Microsecond
	return fmt.Sprintf("p50 %s, p99 %s, of %d", d[len(d)/2].Round(round), d[len(d)*99/100].Round(round), len(d))
}

func sorted[K cmp.Ordered, V any](m map[K]V) func(yield func(K, V) bool) {
	return func(yield func(K, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}
