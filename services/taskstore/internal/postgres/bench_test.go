package postgres_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/errandhq/errand/services/taskstore/internal/storetest"
	"github.com/stretchr/testify/require"
)

func BenchmarkStore(b *testing.B) {
	storetest.Benchmark(b, func(b *testing.B) storetest.Database {
		b.Helper()
		d := newDatabase(b)
		return storetest.Database{Engine: d, Parallel: 4, Settle: func(context.Context) error {
			return d.sql(b, "VACUUM (ANALYZE)")
		}}
	})
}

// A transaction for one task costs a round trip and a wait for the disk; the
// others of its batch come nearly free. A mode that works behind any pooler plans
// each statement anew.
func BenchmarkTasksInATransaction(b *testing.B) {
	for _, mode := range []string{"cache_statement", "cache_describe", "exec"} {
		for _, size := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("mode=%s/size=%d", mode, size), func(b *testing.B) { benchmarkSize(b, mode, size) })
		}
	}
}

func benchmarkSize(b *testing.B, mode string, size int) {
	b.Helper()
	d := openDatabase(b, newURL(b)+"&default_query_exec_mode="+mode)
	seq := atomic.Int64{}
	b.ResetTimer()
	b.SetParallelism(4)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			runThrough(b, d, size, &seq)
		}
	})
	b.ReportMetric(float64(3*b.N)/b.Elapsed().Seconds(), "tx/s")
	b.ReportMetric(float64(size*b.N)/b.Elapsed().Seconds(), "tasks/s")
}

// runThrough takes tasks through their whole life: accepted, claimed, completed.
func runThrough(b *testing.B, d *database, size int, seq *atomic.Int64) {
	b.Helper()
	tasks := begin(b, d, size, seq)
	complete(b, d, tasks)
}

// begin has tasks accepted and claimed.
func begin(b *testing.B, d *database, size int, seq *atomic.Int64) []*engine.Task {
	b.Helper()
	at := now()
	var sel engine.Selection
	created := &engine.Changes{}
	for range size {
		task := queuedTask(at)
		n := seq.Add(1)
		record := engine.Dedupe{
			DedupeKey:   engine.DedupeKey{Tenant: tenant, Subject: owner, Agent: agent, MessageID: fmt.Sprint("m-", n)},
			Fingerprint: make([]byte, 32), TaskID: task.ID, AcceptedVersion: 1, CreatedAt: at,
		}
		sel.Reserve = append(sel.Reserve, record)
		created.InsertTasks = append(created.InsertTasks, task)
		created.Messages = append(created.Messages, engine.Message{TaskID: task.ID, Version: 1, Kind: engine.MessageUser, Data: make([]byte, 200)})
		created.Events = append(created.Events, event(task, 1, n))
		created.TouchContexts = append(created.TouchContexts, engine.Context{
			ContextKey: engine.ContextKey{Tenant: tenant, Owner: owner, Agent: agent, ContextID: fmt.Sprint("c-", n)},
			CreatedAt:  at, UpdatedAt: at, ExpiresAt: at,
		})
	}
	require.NoError(b, d.Update(b.Context(), sel, decideOn(created)))
	step(b, d, created.InsertTasks, claim, func(c *engine.Changes, t *engine.Task) {
		c.PutLeases = append(c.PutLeases, engine.Lease{
			LeaseRef: engine.LeaseRef{TaskID: t.ID, Epoch: t.LeaseEpoch}, Holder: t.Holder, ExpiresAt: at,
		})
	})
	return created.InsertTasks
}

func complete(b *testing.B, d *database, tasks []*engine.Task) {
	b.Helper()
	step(b, d, tasks, settle(a2apb.TaskState_TASK_STATE_COMPLETED), func(c *engine.Changes, t *engine.Task) {
		c.DropLeases = append(c.DropLeases, t.ID)
	})
}

func step(b *testing.B, d *database, tasks []*engine.Task, edit func(*engine.Task), also func(*engine.Changes, *engine.Task)) {
	b.Helper()
	var sel engine.Selection
	for _, t := range tasks {
		sel.Tasks = append(sel.Tasks, engine.TaskKey{ID: t.ID})
	}
	require.NoError(b, d.Update(b.Context(), sel, func(l *engine.Loaded) (*engine.Changes, error) {
		c := &engine.Changes{}
		for _, t := range tasks {
			c.UpdateTasks = append(c.UpdateTasks, edited(l.Tasks[t.ID], edit))
			changed := l.Tasks[t.ID]
			c.Events = append(c.Events, event(changed, changed.Version, 1))
			also(c, changed)
		}
		return c, nil
	}))
}
