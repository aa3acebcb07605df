package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/services/e2e/internal/chaos/journal"
)

// line is something that happened.
type line struct {
	at   time.Time
	text string
}

// story is everything about a task by time, a line each.
func (c *checker) story(r *record) string {
	var lines []line
	tell := func(at time.Time, format string, args ...any) {
		lines = append(lines, line{at, fmt.Sprintf(format, args...)})
	}
	for _, e := range r.log {
		tell(e.GetTime().AsTime(), "log      %3d %s", e.GetVersion(), c.shortLog(response(e)))
	}
	for _, m := range r.messages {
		for _, a := range m.Attempts {
			tellAttempt(tell, fmt.Sprintf("send %q %.8s", m.Text, m.MessageID), a)
		}
	}
	for _, a := range r.cancels {
		tellAttempt(tell, "cancel", a.Attempt)
	}
	for _, read := range r.reads {
		tell(read.At, "read     %s%s, asked at %s", shortTask(read.Task), read.Error, clock(read.Begun))
	}
	for i, s := range r.streams {
		for k, connection := range s.Connections {
			tellConnection(tell, fmt.Sprintf("stream   %d.%d", i+1, k+1), connection)
		}
	}
	for _, run := range r.runs {
		tell(run.Begun, "run      %.8s begins in %s (%d), attempt %d of turn %.8s", run.ID, run.Process, run.PID, run.Attempt, run.Turn)
		if !run.Ended.IsZero() {
			tell(run.Ended, "run      %.8s ends: %s", run.ID, run.Result)
		}
	}
	return c.merge(lines)
}

// merge adds what was done to the cluster meanwhile.
func (c *checker) merge(lines []line) string {
	if len(lines) == 0 {
		return ""
	}
	byTime := func(a, b line) int { return a.at.Compare(b.at) }
	slices.SortStableFunc(lines, byTime)
	for _, i := range c.during(lines[0].at.Add(-c.Lease), lines[len(lines)-1].at) {
		lines = append(lines, line{i.Begun, fmt.Sprintf("chaos    %s %s until %s", i.Kind, i.Target, clock(i.Ended))})
	}
	slices.SortStableFunc(lines, byTime)
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "    %s  %s\n", clock(l.at), l.text)
	}
	return b.String()
}

func tellAttempt(tell func(time.Time, string, ...any), what string, a journal.Attempt) {
	how := ""
	if a.Blocking {
		how = ", blocking"
	}
	tell(a.Begun, "%s over %s%s", what, a.Binding, how)
	answer := a.Error
	switch {
	case a.Lost:
		answer = "lost " + a.Error
	case a.Task != nil:
		answer = shortTask(a.Task)
	case a.Reply != nil:
		answer = "Message " + a.Reply.GetMessageId()
	}
	tell(a.Ended, "%s: %s", what, answer)
}

func tellConnection(tell func(time.Time, string, ...any), what string, c journal.Connection) {
	tell(c.Opened, "%s opens over %s after %d", what, c.Binding, c.Resumed)
	for _, e := range c.Events {
		tell(e.At, "%s sees %3d %s", what, e.Version, shortEvent(e.Event))
	}
	end := "is cut by the reader"
	if c.Ended {
		end = "is ended by the server"
	} else if c.Error != "" {
		end = "ends: " + c.Error
	}
	tell(c.Closed, "%s %s", what, end)
}

func (*checker) shortLog(e *a2apb.StreamResponse) string {
	if e == nil {
		return "message of the user"
	}
	return shortEvent(e)
}

func shortEvent(e *a2apb.StreamResponse) string {
	switch {
	case e.GetTask() != nil:
		return "Task " + shortTask(e.GetTask())
	case e.GetStatusUpdate() != nil:
		return shortStatus(e.GetStatusUpdate().GetStatus())
	default:
		u := e.GetArtifactUpdate()
		return fmt.Sprintf("%s %s append=%t", u.GetArtifact().GetArtifactId(), shortText(partsText(u.GetArtifact())), u.GetAppend())
	}
}

func shortTask(t *a2apb.Task) string {
	if t == nil {
		return ""
	}
	words := []string{shortStatus(t.GetStatus())}
	for _, a := range t.GetArtifacts() {
		words = append(words, fmt.Sprintf("%s×%d", a.GetArtifactId(), len(a.GetParts())))
	}
	return strings.Join(words, " ")
}

func shortStatus(s *a2apb.TaskStatus) string {
	return strings.TrimPrefix(s.GetState().String(), "TASK_STATE_") + " " + clock(s.GetTimestamp().AsTime()) + " " + shortText(agent.TextOf(s.GetMessage()))
}

func partsText(a *a2apb.Artifact) string {
	var texts []string
	for _, p := range a.GetParts() {
		texts = append(texts, p.GetText())
	}
	return strings.Join(texts, " ")
}

// shortText shortens the run that signed a text.
func shortText(text string) string {
	run, rest, signed := journal.Signed(text)
	if !signed {
		return text
	}
	return fmt.Sprintf("%.8s: %.80s", run, rest)
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }
