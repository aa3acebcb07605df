package postgres

import (
	"maps"
	"strings"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// page is the statements of sql/read.sql around one selection of tasks.
type page struct {
	tasks    *statement
	messages *statement
	chunks   *statement
}

func newPage(selection string) *page {
	around := func(name string) *statement {
		return newStatement(name, strings.ReplaceAll(text(name), "{{page}}", selection))
	}
	return &page{
		tasks:    around("read_page"),
		messages: around("read_page_messages"),
		chunks:   around("read_page_chunks"),
	}
}

var pageByID = newPage(text("page_by_id"))

// queue adds the queries for what detail asks. found receives the tasks in the
// order of a listing, complete once the batch is closed.
func (p *page) queue(batch *pgx.Batch, a args, detail engine.Detail, found *snapshots) {
	queue(batch, p.tasks, a, found.addTasks)
	queue(batch, p.messages, withHistory(a, detail.History), found.addMessages)
	if detail.Artifacts {
		queue(batch, p.chunks, a, found.addChunks)
	}
}

// withHistory adds the number of messages, NULL for all.
func withHistory(a args, history int) args {
	b := maps.Clone(a)
	b["history"] = pgtype.Int8{Int64: int64(history), Valid: history >= 0}
	return b
}

// snapshots puts tasks together from their rows.
type snapshots struct {
	list []*engine.Snapshot
	byID map[string]*engine.Snapshot
}

func (s *snapshots) addTasks(rows []*taskRow) {
	s.list = make([]*engine.Snapshot, len(rows))
	s.byID = make(map[string]*engine.Snapshot, len(rows))
	for i, r := range rows {
		s.list[i] = &engine.Snapshot{Task: r.task()}
		s.byID[r.ID] = s.list[i]
	}
}

func (s *snapshots) addMessages(rows []*messageRow) {
	for _, r := range rows {
		snapshot, m := s.byID[r.TaskID], r.message()
		if m.Kind == engine.MessageStatus && m.Version == snapshot.Task.StatusVersion {
			snapshot.StatusMessage = &m
			continue
		}
		snapshot.History = append(snapshot.History, m)
	}
}

func (s *snapshots) addChunks(rows []*chunkRow) {
	for _, r := range rows {
		snapshot := s.byID[r.TaskID]
		snapshot.Chunks = append(snapshot.Chunks, r.chunk())
	}
}

// filters says which clauses a listing has.
type filters struct {
	agent, owner, context, state, since, after bool
}

// listing is the statements for one set of filters.
type listing struct {
	page     *page
	count    *statement
	estimate *statement
}

func (e *Engine) listing(f filters) *listing {
	if found, ok := e.listings.Load(f); ok {
		return found.(*listing) //nolint:forcetypeassert // nothing else is stored
	}
	selection := f.selection()
	limited := selection + "\n" + text("page_order") + "\n" + text("page_limit")
	l := &listing{
		page:     newPage(limited),
		count:    newStatement("count_page", strings.ReplaceAll(text("count_page"), "{{page}}", limited)),
		estimate: newStatement("estimate_page", strings.ReplaceAll(text("estimate_page"), "{{page}}", selection)),
	}
	e.listings.Store(f, l)
	return l
}

func (f filters) selection() string {
	clauses := []string{text("page_of_tenant")}
	for _, c := range []struct {
		used bool
		name string
	}{
		{f.agent, "page_agent"},
		{f.owner, "page_owner"},
		{f.context, "page_context"},
		{f.state, "page_state"},
		{f.since, "page_since"},
		{f.after, "page_after"},
	} {
		if c.used {
			clauses = append(clauses, text(c.name))
		}
	}
	return strings.Join(clauses, "\n  ")
}

// filter gives the clauses and arguments of a query.
func filter(q *engine.ListQuery) (filters, args) {
	f, a := filters{}, args{"tenant": key(q.Scope.Tenant)}
	use := func(used *bool, condition bool, name string, value any) {
		if condition {
			*used, a[name] = true, value
		}
	}
	use(&f.agent, q.Scope.Agent != "", "agent", key(q.Scope.Agent))
	use(&f.owner, q.Scope.Owner != "", "owner", key(q.Scope.Owner))
	use(&f.context, q.ContextID != "", "context_id", key(q.ContextID))
	use(&f.state, q.State != a2apb.TaskState_TASK_STATE_UNSPECIFIED, "state", stateNumber(q.State))
	use(&f.since, !q.StatusSince.IsZero(), "since", stamp(q.StatusSince))
	use(&f.after, !q.BeforeTime.IsZero(), "before_time", stamp(q.BeforeTime))
	use(&f.after, !q.BeforeTime.IsZero(), "before_id", taskID(q.BeforeID))
	return f, a
}
