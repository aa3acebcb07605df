package check

import (
	"fmt"
	"io"
	"strings"
)

// Kind is what kind of promise was broken.
type Kind string

// The kinds.
const (
	// Lost: an accepted message has no task, or isn't in it once.
	Lost Kind = "lost"
	// Doubled: one message has two outcomes, or a task comes from no message.
	Doubled Kind = "doubled"
	// Open: a task doesn't end.
	Open Kind = "open"
	// Versions: not one event for each version from 1, or a log that makes another task.
	Versions Kind = "versions"
	// Final: a change after the end, or a move that the table of moves doesn't have.
	Final Kind = "final"
	// Stream: a subscriber saw something else than the log.
	Stream Kind = "stream"
	// Lag: a subscriber saw nothing for long although there was something.
	Lag Kind = "lag"
	// Stalled: a turn had no run for long although one could have begun.
	Stalled Kind = "stalled"
	// Told: a sender was told something that the store contradicts.
	Told Kind = "told"
	// Fenced: a run wrote after a later one had begun to, or wrote gaps.
	Fenced Kind = "fenced"
	// Failed: a task failed, or a sender was refused, without need.
	Failed Kind = "failed"
	// Unanswered: a message got no answer until the end.
	Unanswered Kind = "unanswered"
	// Share: too few of the tasks that were meant to complete did.
	Share Kind = "share"
	// Left: events that were not published, processes that ended by themselves,
	// or a store that could not be read.
	Left Kind = "left"
)

var kinds = []Kind{Lost, Doubled, Open, Versions, Final, Stream, Lag, Stalled, Told, Fenced, Failed, Unanswered, Share, Left}

// Violation is one broken promise.
type Violation struct {
	Kind Kind
	// TaskID is empty if it is about no task.
	TaskID string
	Text   string
}

// Bounds of what a report shows: whole stories, and lines for each kind.
const (
	stories = 6
	lines   = 10
)

// Report is what a check found.
type Report struct {
	// Summary is what happened, by name and value, in the order to show.
	Summary []Row

	violations map[Kind][]Violation
	// Whole stories of the first tasks of each kind.
	stories []string
	told    map[string]bool
	numbers *numbers
}

// Row is a line of the summary.
type Row struct{ Name, Value string }

func newReport() *Report {
	return &Report{violations: map[Kind][]Violation{}, told: map[string]bool{}, numbers: newNumbers()}
}

// Found are the kinds of which there are violations.
func (r *Report) Found() []Kind {
	var found []Kind
	for _, k := range kinds {
		if len(r.violations[k]) > 0 {
			found = append(found, k)
		}
	}
	return found
}

func (r *Report) addf(c *checker, of *record, kind Kind, format string, args ...any) {
	v := Violation{Kind: kind, Text: fmt.Sprintf(format, args...)}
	if of != nil {
		v.TaskID = of.id
	}
	// A kind that is seen often leaves room for the others.
	if of != nil && !r.told[of.id] && len(r.stories) < stories && len(r.violations[kind]) < 2 {
		r.told[of.id] = true
		r.stories = append(r.stories, fmt.Sprintf("%s: %s\n%s", kind, v.Text, c.story(of)))
	}
	r.violations[kind] = append(r.violations[kind], v)
}

// Write writes the report for people.
func (r *Report) Write(w io.Writer) error {
	var b strings.Builder
	for _, row := range r.Summary {
		fmt.Fprintf(&b, "%-28s %s\n", row.Name, row.Value)
	}
	b.WriteString("\n")
	total := 0
	for _, kind := range r.Found() {
		found := r.violations[kind]
		total += len(found)
		fmt.Fprintf(&b, "%d %s\n", len(found), kind)
		for _, v := range found[:min(lines, len(found))] {
			fmt.Fprintf(&b, "    %s  %s\n", v.TaskID, v.Text)
		}
	}
	fmt.Fprintf(&b, "%d violations\n", total)
	for _, s := range r.stories {
		b.WriteString("\n" + s)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}
