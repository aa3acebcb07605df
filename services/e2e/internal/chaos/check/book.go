package check

import "github.com/errandhq/errand/services/e2e/internal/chaos/journal"

// book is the journal, to be looked up by task and by message.
type book struct {
	messages map[string]*journal.Message
	tasks    map[string]*entries
}

// entries are what the journal has of one task.
type entries struct {
	messages []*journal.Message
	cancels  []*journal.Cancel
	reads    []*journal.Read
	streams  []*journal.Stream
	runs     []journal.Run
}

func newBook(j *journal.Journal, runs []journal.Run) *book {
	b := &book{messages: map[string]*journal.Message{}, tasks: map[string]*entries{}}
	for _, m := range j.Messages() {
		b.messages[m.MessageID] = m
		for id := range named(m) {
			e := b.begin(id)
			e.messages = append(e.messages, m)
		}
	}
	for _, c := range j.Cancels() {
		e := b.begin(c.TaskID)
		e.cancels = append(e.cancels, c)
	}
	for _, r := range j.Reads() {
		e := b.begin(r.TaskID)
		e.reads = append(e.reads, r)
	}
	for _, s := range j.Streams() {
		e := b.begin(s.TaskID)
		e.streams = append(e.streams, s)
	}
	for _, r := range runs {
		e := b.begin(r.TaskID)
		e.runs = append(e.runs, r)
	}
	return b
}

// named are the tasks that a message names or was answered with.
func named(m *journal.Message) map[string]bool {
	tasks := map[string]bool{}
	if m.TaskID != "" {
		tasks[m.TaskID] = true
	}
	for _, a := range m.Attempts {
		if a.Task != nil {
			tasks[a.Task.GetId()] = true
		}
	}
	return tasks
}

func (b *book) begin(taskID string) *entries {
	if b.tasks[taskID] == nil {
		b.tasks[taskID] = &entries{}
	}
	return b.tasks[taskID]
}

// of is empty for a task that nobody was told of.
func (b *book) of(taskID string) entries {
	if e := b.tasks[taskID]; e != nil {
		return *e
	}
	return entries{}
}
