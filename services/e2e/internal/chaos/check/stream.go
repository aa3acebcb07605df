package check

import (
	"slices"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/services/e2e/internal/chaos/journal"
)

const (
	// lag is how long after its commit an event may be shown.
	lag = 15 * time.Second
	// recovery is what connections need after an interruption.
	recovery = time.Second
)

// streams: each connection shows the log, from where it begins, in order and
// each event once.
func (c *checker) streams(r *record) {
	for _, s := range r.streams {
		var shown int64
		for i := range s.Connections {
			f := &follower{checker: c, r: r, c: &s.Connections[i], shown: shown}
			f.follow()
			shown = max(shown, f.shown)
		}
	}
}

// follower reads one connection beside the log.
type follower struct {
	*checker

	r *record
	c *journal.Connection
	// The versions at which the subscriber may be: several where a snapshot
	// doesn't tell. Empty before the first event.
	at []int64
	// What the subscriber has surely seen, over all connections.
	shown  int64
	broken bool
}

func (f *follower) failf(kind Kind, format string, args ...any) {
	f.broken = true
	f.violationf(f.r, kind, "%s stream of %s: "+format, append([]any{f.c.Binding, clock(f.c.Opened)}, args...)...)
}

func (f *follower) follow() {
	if f.c.Resumed > 0 {
		f.at = []int64{f.c.Resumed}
	}
	for i, e := range f.c.Events {
		f.mark(i, e)
		if e.Event.GetTask() != nil {
			f.snapshot(e)
		} else {
			f.event(i, e)
		}
		if f.broken {
			return
		}
		f.shown = max(f.shown, slices.Min(f.at))
	}
	f.refusal()
	f.end()
}

// mark: over HTTP, a Task that stands for missed events says so, and nothing else
// does.
func (f *follower) mark(i int, e journal.Seen) {
	if f.c.Binding != "grpc" && e.Resync != resync(f.c, i) {
		f.failf(Stream, "event %d is marked as resync: %t: %s", i+1, e.Resync, shortEvent(e.Event))
	}
}

// resync tells whether event i stands for events that the subscriber missed: it is
// a Task in the middle of a stream, or begins one that was resumed.
func resync(c *journal.Connection, i int) bool {
	return c.Events[i].Event.GetTask() != nil && (i > 0 || c.Resumed > 0)
}

// snapshot stands for all before it, and is not older than what was seen.
func (f *follower) snapshot(e journal.Seen) {
	f.at = nil
	highest := int64(0)
	for i, state := range f.r.states {
		v := int64(i) + 1
		if alike(state, e.Event.GetTask()) && (e.Version == 0 || e.Version == v) {
			highest = v
			if v >= f.shown {
				f.at = append(f.at, v)
			}
		}
	}
	switch {
	case highest == 0:
		f.failf(Stream, "Task (id %d) that never was so: %s", e.Version, shortTask(e.Event.GetTask()))
	case len(f.at) == 0:
		f.failf(Stream, "Task of version %d after version %d was seen", highest, f.shown)
	}
}

// event is the one that follows in the log.
func (f *follower) event(i int, e journal.Seen) {
	if len(f.at) == 0 {
		f.failf(Stream, "begins without a Task: %s", shortEvent(e.Event))
		return
	}
	var at []int64
	for _, v := range f.at {
		if next := f.r.next(v); next > 0 && (e.Version == 0 || e.Version == next) && proto.Equal(f.r.seen(next), e.Event) {
			at = append(at, next)
		}
	}
	if len(at) == 0 {
		f.failf(Stream, "event %d after version %v is %s: id %d, %s", i+1, f.at, f.wrong(e.Event), e.Version, shortEvent(e.Event))
		return
	}
	f.late(at[0], e.At)
	f.at = at
}

// wrong says what is wrong with an event that is not the next one.
func (f *follower) wrong(e *a2apb.StreamResponse) string {
	for v := int64(len(f.r.log)); v > 0; v-- {
		if proto.Equal(f.r.seen(v), e) {
			switch {
			case v > slices.Max(f.at):
				return "one too far"
			default:
				return "one that was seen"
			}
		}
	}
	return "not in the log"
}

// late: an event is shown soon after it could be; while something on its way is
// interrupted, and for a moment afterwards, no time counts.
func (f *follower) late(v int64, shown time.Time) {
	since := latest(f.r.committed(v), f.c.Opened)
	d := shown.Sub(since)
	if d > lag {
		d -= covered(f.during(since.Add(-recovery), shown, behind...), since, shown)
	}
	if d > lag {
		f.failf(Lag, "version %d was not shown for %s, of which %s without interruptions",
			v, shown.Sub(since).Round(time.Millisecond), d.Round(time.Millisecond))
	}
}

// covered is how much of a span of time interruptions take, each with the time to
// recover from it.
func covered(interruptions []journal.Interruption, from, to time.Time) time.Duration {
	slices.SortFunc(interruptions, func(a, b journal.Interruption) int { return a.Begun.Compare(b.Begun) })
	var sum time.Duration
	for _, i := range interruptions {
		end := latest(i.Begun, i.Ended).Add(recovery)
		if end.After(to) {
			end = to
		}
		from = latest(from, i.Begun)
		if end.After(from) {
			sum += end.Sub(from)
			from = end
		}
	}
	return sum
}

// end: the server ends a stream after the end alone, or when a gateway goes.
func (f *follower) end() {
	var last int64
	if len(f.at) > 0 {
		last = slices.Max(f.at)
		if next := f.r.next(last); next > 0 && !f.c.Ended {
			f.late(next, f.c.Closed)
		}
	}
	if f.c.Ended && !f.mayEnd(last) && len(f.during(f.c.Opened, f.c.Closed.Add(time.Second), "gateway", "front")) == 0 {
		f.failf(Stream, "ended after version %d of %d", last, len(f.r.log))
	}
}

// mayEnd: a stream that a message opened ends with the question, too.
func (f *follower) mayEnd(last int64) bool {
	if last == 0 {
		return false
	}
	state := f.r.state(last)
	return task.Terminal(state) || f.c.OfTurn && state == task.InputRequired
}

// refusal: who subscribes after the end is refused, and nobody else.
func (f *follower) refusal() {
	c := f.c
	if c.Error == "" || c.Retryable || c.OfTurn && len(c.Events) == 0 {
		return // of messages, see attempt
	}
	if c.Error != "UNSUPPORTED_OPERATION" || !f.r.ended(c.Closed) {
		f.failf(Failed, "refused: %s", c.Error)
	}
}
