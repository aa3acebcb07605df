package reaper

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errandhq/errand/pkg/queue"
	executorv1 "github.com/errandhq/errand/proto/gen/errand/executor/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
)

// backlogVariable says how long the long backlog of the test is; a million takes
// a minute.
const backlogVariable = "ERRAND_TEST_BACKLOG"

func longBacklog(t *testing.T) int {
	t.Helper()
	value := os.Getenv(backlogVariable)
	if value == "" {
		return 20_000
	}
	n, err := strconv.Atoi(value)
	require.NoError(t, err, backlogVariable)
	return n
}

// However many tasks wait: a look asks the same number of questions, and sends
// nothing again.
func TestALookAtABacklogCostsTheSameHoweverLongItIs(t *testing.T) {
	t.Parallel()
	short := newCluster(t)
	short.queue(100)
	long := newCluster(t)
	n := longBacklog(t)
	long.queue(n)
	began := time.Now()
	require.Equal(t, short.looks(10), long.looks(10))
	t.Logf("ten looks at 100 and at %d queued tasks took %s", n, time.Since(began))
	require.Equal(t, n, long.messages())
	require.Equal(t, n, long.queuedOnce())
}

// queue puts tasks and their messages where acceptances would, all at once.
func (c *cluster) queue(n int) {
	c.Helper()
	db, err := pgx.Connect(c.Context(), c.url)
	require.NoError(c, err)
	defer func() { require.NoError(c, db.Close(context.Background())) }()
	_, err = db.Exec(c.Context(), `
		INSERT INTO tasks (id, version, created_at, status_version, status_time, message_version, queued_at,
			handled_version, turn_started_at, content_bytes, enqueue_count, lease_epoch, write_seq, attempt, state, phase,
			tenant, agent, owner, context_id, holder, traceparent)
		SELECT ('00000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, 1, at, 1, at, 1, at,
			0, at, 0, 1, 0, 0, 0, 1, 1, $1, $2, 'alice', 'context', '', ''
		FROM generate_series(1, $3) AS i, LATERAL (SELECT now() + i * interval '1 microsecond' AS at) AS q`,
		tenant, agent, n)
	require.NoError(c, err)
	_, err = db.Exec(c.Context(), "ANALYZE tasks")
	require.NoError(c, err)
	c.publish(n)
}

func (c *cluster) publish(n int) {
	c.Helper()
	js, err := jetstream.New(c.nc, jetstream.WithPublishAsyncMaxPending(10_000))
	require.NoError(c, err)
	for i := range n {
		work := &executorv1.WorkItem{
			Tenant: tenant, Agent: agent, TaskId: fmt.Sprintf("00000000-0000-7000-8000-%012x", i+1), Version: 1, EnqueueCount: 1,
		}
		data, err := proto.Marshal(work)
		require.NoError(c, err)
		msg := &nats.Msg{Subject: "errand.work." + agent + "." + tenant, Data: data, Header: nats.Header{}}
		msg.Header.Set(nats.MsgIdHdr, queue.MessageID(work))
		_, err = js.PublishMsgAsync(msg, jetstream.WithStallWait(patience))
		require.NoError(c, err)
	}
	<-js.PublishAsyncComplete()
	c.requireMessages(n)
}

// cost is what looks ask of the database and of NATS.
type cost struct{ Queries, Rows, Requests int64 }

// looks is some looks for lost work, long after everything was queued.
func (c *cluster) looks(times int) cost {
	c.Helper()
	c.clock.advance(old)
	counted := &countingEngine{Engine: c.engine}
	r := c.Reaper
	r.Engine = counted
	requests := c.nc.Stats().OutMsgs
	for range times {
		full, err := r.enqueueLost(c.Context())
		require.NoError(c, err)
		require.False(c, full)
	}
	return cost{counted.queries.Load(), counted.rows.Load(), int64(c.nc.Stats().OutMsgs - requests)}
}

// queuedOnce is how many tasks executors were told of once.
func (c *cluster) queuedOnce() int {
	c.Helper()
	db, err := pgx.Connect(c.Context(), c.url)
	require.NoError(c, err)
	defer func() { require.NoError(c, db.Close(context.Background())) }()
	n := 0
	require.NoError(c, db.QueryRow(c.Context(), "SELECT count(*) FROM tasks WHERE phase = 1 AND enqueue_count = 1").Scan(&n))
	return n
}

// countingEngine counts what a look for lost work reads.
type countingEngine struct {
	engine.Engine

	queries, rows atomic.Int64
}

func (e *countingEngine) read(rows int) {
	e.queries.Add(1)
	e.rows.Add(int64(rows))
}

func (e *countingEngine) Queues(ctx context.Context) ([]engine.Queue, error) {
	queues, err := e.Engine.Queues(ctx)
	e.read(len(queues))
	return queues, err
}

func (e *countingEngine) OldestQueued(ctx context.Context, q engine.Queue, before time.Time, limit int) ([]string, error) {
	ids, err := e.Engine.OldestQueued(ctx, q, before, limit)
	e.read(len(ids))
	return ids, err
}

func (e *countingEngine) ReadTasks(
	ctx context.Context, scope engine.Scope, ids []string, detail engine.Detail,
) ([]*engine.Snapshot, error) {
	tasks, err := e.Engine.ReadTasks(ctx, scope, ids, detail)
	e.read(len(tasks))
	return tasks, err
}
