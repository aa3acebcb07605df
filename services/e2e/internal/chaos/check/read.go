package check

import (
	"context"
	"fmt"
	"sync"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/pkg/task"
)

const (
	// readers read logs at the same time.
	readers = 16
	// A read that fails is tried so often, so far apart.
	tries = 20
	apart = 500 * time.Millisecond
)

// await waits until no task is open and all events are published, as long as
// that may take.
func (c *checker) await(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, c.Settle)
	defer cancel()
	err := c.retry(limited, func() error { return c.done(limited) })
	if backlog := c.backlog(ctx); backlog != nil {
		c.violationf(nil, Left, "after %s: %v", c.Settle, backlog)
	}
	if err != nil {
		c.Logger.WarnContext(ctx, "the cluster did not come to rest", "error", err)
	}
}

// retry repeats f until it succeeds or ctx ends.
func (c *checker) retry(ctx context.Context, f func() error) error {
	tick := time.NewTicker(apart)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

func (c *checker) done(ctx context.Context) error {
	for _, agent := range c.Agents {
		for _, state := range []a2apb.TaskState{task.Submitted, task.Working, task.InputRequired, task.AuthRequired} {
			in := &taskstorev1.ListTasksRequest{Scope: c.scope(agent), State: state, PageSize: 1}
			page, err := c.Store.ListTasks(ctx, in)
			if err != nil {
				return fmt.Errorf("list tasks: %w", err)
			}
			if len(page.GetTasks()) > 0 {
				return fmt.Errorf("%d tasks are %s", page.GetTotalSize(), state)
			}
		}
	}
	return c.backlog(ctx)
}

func (c *checker) backlog(ctx context.Context) error {
	if c.Backlog == nil {
		return nil
	}
	n, err := c.Backlog(ctx)
	if err != nil {
		return fmt.Errorf("ask for the backlog: %w", err)
	}
	if n > 0 {
		return fmt.Errorf("%d events are not published", n)
	}
	return nil
}

func (c *checker) scope(agent string) *taskstorev1.Scope {
	return &taskstorev1.Scope{Tenant: c.Tenant, Subject: c.Subject, Agent: agent}
}

// readAll reads each task with its log, and judges it.
func (c *checker) readAll(ctx context.Context) {
	tasks := make(chan *record)
	var all sync.WaitGroup
	for range readers {
		all.Go(func() {
			for r := range tasks {
				c.judge(ctx, r)
			}
		})
	}
	for _, agent := range c.Agents {
		c.list(ctx, agent, tasks)
	}
	close(tasks)
	all.Wait()
}

func (c *checker) list(ctx context.Context, agent string, tasks chan<- *record) {
	in := &taskstorev1.ListTasksRequest{Scope: c.scope(agent), PageSize: 100, IncludeArtifacts: true, HistoryLength: proto.Int32(100)}
	for {
		var page *taskstorev1.ListTasksResponse
		if err := c.read(ctx, func() (err error) { page, err = c.Store.ListTasks(ctx, in); return err }); err != nil {
			c.violationf(nil, Left, "tasks of %s can't be listed: %v", agent, err)
			return
		}
		for _, t := range page.GetTasks() {
			tasks <- &record{id: t.GetId(), agent: agent, task: t, entries: c.book.of(t.GetId())}
		}
		if in.PageToken = page.GetNextPageToken(); in.GetPageToken() == "" {
			return
		}
	}
}

// read tries a read of the store some times.
func (c *checker) read(ctx context.Context, f func() error) error {
	limited, cancel := context.WithTimeout(ctx, tries*apart)
	defer cancel()
	return c.retry(limited, f)
}

// judge reads a task's log and compares with it all that is known of the task.
func (c *checker) judge(ctx context.Context, r *record) {
	c.mu.Lock()
	c.known[r.id] = true
	c.mu.Unlock()
	if err := c.readLog(ctx, r); err != nil {
		c.violationf(r, Left, "the log can't be read: %v", err)
		return
	}
	c.origins(r)
	if !c.log(r) {
		return // nothing can be compared with such a log
	}
	c.end(r)
	c.told(r)
	c.streams(r)
	c.runs(r)
	due := c.due(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.numbers.task(r, due)
}

func (c *checker) readLog(ctx context.Context, r *record) error {
	in := &taskstorev1.ListEventsRequest{Scope: c.scope(r.agent), TaskId: r.id}
	for {
		var page *taskstorev1.ListEventsResponse
		if err := c.read(ctx, func() (err error) { page, err = c.Store.ListEvents(ctx, in); return err }); err != nil {
			return err
		}
		r.log, r.version = append(r.log, page.GetEvents()...), page.GetVersion()
		if len(page.GetEvents()) == 0 || r.log[len(r.log)-1].GetVersion() >= r.version {
			return nil
		}
		in.After = r.log[len(r.log)-1].GetVersion()
	}
}
