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
)

// numbers are counted while tasks are read.
type numbers struct {
	states           map[a2apb.TaskState]int
	meant, fulfilled int
	toEnd            []time.Duration
	idle             []idle
}

func newNumbers() *numbers { return &numbers{states: map[a2apb.TaskState]int{}} }

func (n *numbers) task(r *record, due []idle) {
	state := r.task.GetStatus().GetState()
	n.states[state]++
	n.idle = append(n.idle, due...)
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
	c.countInterruptions()
	c.countMessages()
	c.countTasks()
	c.countRuns()
	c.countStreams()
	c.countCancels()
}

func (c *checker) row(name string, value any) {
	c.report.Summary = append(c.report.Summary, Row{name, fmt.Sprint(value)})
}

// countInterruptions has those of each kind and target on one line for each kind.
func (c *checker) countInterruptions() {
	kinds, targets := map[string]int{}, map[string]map[string]int{}
	for _, i := range c.Interruptions {
		kinds[i.Kind]++
		if targets[i.Kind] == nil {
			targets[i.Kind] = map[string]int{}
		}
		targets[i.Kind][strings.TrimRight(i.Target, "-0123456789")]++
	}
	c.row("interruptions", len(c.Interruptions))
	c.row("kills and pauses", kinds["kill"]+kinds["pause"])
	for kind, count := range sorted(kinds) {
		var each []string
		for target, n := range sorted(targets[kind]) {
			each = append(each, fmt.Sprintf("%s %d", target, n))
		}
		c.row("  "+kind, fmt.Sprintf("%d: %s", count, strings.Join(each, ", ")))
	}
}

func (c *checker) countTasks() {
	n := c.report.numbers
	for state, count := range sorted(n.states) {
		c.row("tasks "+strings.ToLower(strings.TrimPrefix(state.String(), "TASK_STATE_")), count)
	}
	c.row("meant to complete", fmt.Sprintf("%d of %d, %s", n.fulfilled, n.meant, percent(n.fulfilled, n.meant)))
	c.row("created to completed", spread(n.toEnd))
}

// countRuns also measures how long turns lay still.
func (c *checker) countRuns() {
	attempts := map[int]int{}
	for _, run := range c.Runs {
		attempts[run.Attempt]++
	}
	c.row("runs", len(c.Runs))
	for attempt, count := range sorted(attempts) {
		if attempt > 1 {
			c.row(fmt.Sprintf("  attempt %d", attempt), count)
		}
	}
	var begin, killed, otherwise []time.Duration
	for _, i := range c.report.numbers.idle {
		d := i.until.Sub(i.since)
		switch {
		case !i.begun:
		case i.after == nil:
			begin = append(begin, d)
		case i.after.Ended.IsZero():
			killed = append(killed, d)
		default:
			otherwise = append(otherwise, d)
		}
	}
	c.row("accepted to begun", spread(begin))
	c.row("taken over after a kill", spread(killed))
	c.row("taken over otherwise", spread(otherwise))
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
			for i := range connection.Events {
				if resync(&connection, i) {
					resyncs++
				}
			}
		}
	}
	c.row("streams", len(streams))
	c.row("connections", connections)
	c.row("  cut by the reader", cuts)
	c.row("  broken or refused", refused)
	c.row("  resumed by Last-Event-ID", resumed)
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

// spread is the median, what only one in a hundred exceeds, and the longest.
func spread(d []time.Duration) string {
	if len(d) == 0 {
		return "none"
	}
	slices.Sort(d)
	const round = time.Millisecond
	return fmt.Sprintf("p50 %s, p99 %s, max %s, of %d",
		d[len(d)/2].Round(round), d[len(d)*99/100].Round(round), d[len(d)-1].Round(round), len(d))
}

func percent(part, whole int) string {
	if whole == 0 {
		return "none"
	}
	return fmt.Sprintf("%.2f %%", 100*float64(part)/float64(whole))
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
