// Package check looks whether a cluster kept its word in a chaos run: it reads
// what senders, subscribers and handlers wrote down, reads every task and its
// event log from the store, and says where they contradict each other.
package check

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"google.golang.org/grpc"

	"github.com/errandhq/errand/services/e2e/internal/chaos/journal"
)

// Store is what the checker reads; a TaskStoreServiceClient is one.
type Store interface {
	ListTasks(ctx context.Context, in *taskstorev1.ListTasksRequest, opts ...grpc.CallOption) (*taskstorev1.ListTasksResponse, error)
	ListEvents(ctx context.Context, in *taskstorev1.ListEventsRequest, opts ...grpc.CallOption) (*taskstorev1.ListEventsResponse, error)
}

// Config is what was done, and what was promised.
type Config struct {
	Store Store
	// Tenant and Subject are those of the senders.
	Tenant, Subject string
	// Agents are all that were sent to.
	Agents  []string
	Journal *journal.Journal
	// Runs may be empty if nobody wrote them down.
	Runs          []journal.Run
	Interruptions []journal.Interruption

	// Lease, MaxAttempts and Wait (of blocking sends) as in the agents file.
	Lease       time.Duration
	MaxAttempts int
	Wait        time.Duration
	// Settle is how long the cluster may take for what is left when the load has
	// ended.
	Settle time.Duration
	// Stall is how long a turn may lie without a run while later ones are begun; 0
	// stands for 20 s.
	Stall time.Duration
	// Backlog is how many events are committed and not published. Nil: not asked.
	Backlog func(context.Context) (int64, error)
	// Exits are the processes that ended by themselves, and how.
	Exits []string

	Logger *slog.Logger
}

type checker struct {
	Config

	book *book

	mu sync.Mutex
	// The task that each message in the store belongs to.
	homes map[string]string
	// Tasks by id, as the store has them.
	known  map[string]bool
	report *Report
}

// Check waits until all is done, and reports.
func Check(ctx context.Context, cfg Config) *Report {
	c := &checker{
		Config: cfg, book: newBook(cfg.Journal, cfg.Runs),
		homes: map[string]string{}, known: map[string]bool{}, report: newReport(),
	}
	c.await(ctx)
	c.readAll(ctx)
	c.messages()
	c.strangers()
	c.stalls()
	c.share()
	for _, exit := range cfg.Exits {
		c.violationf(nil, Left, "a process ended by itself: %s", exit)
	}
	c.measure()
	return c.report
}

// messages judges each message by all that it was told.
func (c *checker) messages() {
	for _, m := range c.book.messages {
		c.message(m)
	}
}

// strangers: what was told about a task that the store doesn't have was told by
// nobody who may.
func (c *checker) strangers() {
	for id := range maps.Keys(c.book.tasks) {
		if !c.known[id] {
			r := &record{id: id, entries: c.book.of(id)}
			c.violationf(r, Lost, "the store has no task %s", id)
		}
	}
}

// violationf adds what was found about a task, nil for none.
func (c *checker) violationf(r *record, kind Kind, format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.addf(c, r, kind, format, args...)
}
