package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/events"
	"github.com/errandhq/errand/pkg/queue"
	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/pkg/testkit"
	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/errandhq/errand/services/taskstore/internal/publish"
	"github.com/errandhq/errand/services/taskstore/internal/store"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// interrupted is a publisher that lets something happen between the halves of the
// next transaction.
type interrupted struct {
	store.Publisher
	between func()
}

func (i *interrupted) Reserve(n int) store.Reservation {
	if between := i.between; between != nil {
		i.between = nil
		between()
	}
	return i.Publisher.Reserve(n)
}

// newPublisher publishes what a store writes to a NATS server of the test's own.
func newPublisher(t *testing.T, outbox engine.Outbox) (*publish.Publisher, *nats.Conn) {
	t.Helper()
	nc := testkit.NATS(t)
	require.NoError(t, events.EnsureStream(t.Context(), nc, events.StreamConfig{}))
	published, err := events.NewPublisher(nc, events.PublisherConfig{})
	require.NoError(t, err)
	work, err := queue.NewPublisher(nc, queue.PublisherConfig{})
	require.NoError(t, err)
	p := publish.New(publish.Options{
		Name: "store-1", Outbox: outbox, NATS: nc, Events: published, Work: work, Now: time.Now, Logger: testkit.Logger(t),
	})
	require.NoError(t, p.Start(t.Context()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		require.NoError(t, p.Stop(ctx))
	})
	return p, nc
}

func newStore(t *testing.T, e engine.Engine, p store.Publisher) *store.Store {
	t.Helper()
	s := store.New(e, store.Options{
		Publisher: p, Agents: &config.Agents{Limits: config.DefaultLimits()}, CursorKey: task.CursorKey("0123456789abcdef"),
		Now: time.Now, NewID: task.NewID, ContextTTL: time.Hour, Parallel: 4,
	})
	t.Cleanup(s.Close)
	return s
}

// message is a request to accept a message, which starts a task unless it names one.
func message(id, taskID string) *taskstorev1.AcceptMessageRequest {
	m := &a2apb.Message{MessageId: id, TaskId: taskID, Role: a2apb.Role_ROLE_USER}
	return &taskstorev1.AcceptMessageRequest{
		Scope: &taskstorev1.Scope{Tenant: tenant, Agent: agent, Subject: owner}, Message: m,
		NewTaskId: task.NewID(), NewContextId: task.NewID(), Request: &eventv1.RequestInfo{Subject: owner},
		Dedupe: true, Fingerprint: task.Fingerprint(m), WhileRunning: taskstorev1.FollowUpPolicy_FOLLOW_UP_POLICY_APPEND,
	}
}

// The connection is cut exactly when COMMIT has been forwarded, before it arrives
// or before its answer does. The caller may retry and gets one task; its event is
// published once.
func TestWhatIsInDoubtIsResolved(t *testing.T) {
	t.Parallel()
	for name, now := range map[string]cut{"the request was lost": cutBefore, "the answer was lost": cutAfter} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			direct := newDatabase(t)
			p := newPooler(t, direct.url, 1)
			publisher, nc := newPublisher(t, direct)
			s := newStore(t, openDatabase(t, p.url(oneRequest)), &interrupted{publisher, func() { p.next.Store(int32(now)) }})

			r := message("m", "")
			results := s.AcceptMessages(t.Context(), []*taskstorev1.AcceptMessageRequest{r})
			require.ErrorIs(t, results[0].Err, engine.ErrInDoubt)
			committed := one[int](t, direct, "SELECT count(*) FROM tasks") == 1
			require.Equal(t, now == cutAfter, committed)
			if committed {
				requirePublished(t, nc, 1) // whether anybody asks again or not
			}
			results = s.AcceptMessages(t.Context(), []*taskstorev1.AcceptMessageRequest{r})
			require.NoError(t, results[0].Err)
			require.Equal(t, r.GetNewTaskId(), results[0].Value.GetTask().GetId())
			require.Equal(t, 1, one[int](t, direct, "SELECT count(*) FROM tasks"))
			requirePublished(t, nc, 1)
		})
	}
}

// requirePublished waits until the stream holds n events.
func requirePublished(t *testing.T, nc *nats.Conn, n uint64) {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		stream, err := js.Stream(t.Context(), events.Stream)
		return err == nil && stream.CachedInfo().State.LastSeq == n
	}, time.Minute, 10*time.Millisecond)
}

func TestALockedRowHoldsUpItsOwnTaskAlone(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	publisher, _ := newPublisher(t, d)
	s := newStore(t, d, publisher)
	requests := make([]*taskstorev1.AcceptMessageRequest, 3)
	for i := range requests {
		requests[i] = message(fmt.Sprint("first-", i), "")
	}
	requireAccepted(t, s.AcceptMessages(t.Context(), requests))
	locked := requests[0].GetNewTaskId()
	other, err := d.pool(t).Begin(t.Context())
	require.NoError(t, err)
	_, err = other.Exec(t.Context(), "SELECT FROM tasks WHERE id = $1 FOR UPDATE", locked)
	require.NoError(t, err)

	for i, r := range requests {
		requests[i] = message(fmt.Sprint("second-", i), r.GetNewTaskId())
	}
	defer other.Rollback(context.Background())
	done := make(chan []store.Result[*taskstorev1.AcceptMessageResponse], 1)
	go func() { done <- s.AcceptMessages(t.Context(), requests) }()
	require.Eventually(t, func() bool {
		return one[int](t, d, "SELECT count(*) FROM tasks WHERE version = 2 AND id <> $1", locked) == 2
	}, lockPatience, 10*time.Millisecond, "the others of its batch go on")
	require.NoError(t, other.Rollback(t.Context()))
	requireAccepted(t, <-done)
}

// lockPatience is shorter than what a change of the locked row waits alone.
const lockPatience = 8 * time.Second

func requireAccepted(t *testing.T, results []store.Result[*taskstorev1.AcceptMessageResponse]) {
	t.Helper()
	for _, r := range results {
		require.NoError(t, r.Err)
	}
}
