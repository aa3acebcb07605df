package queue_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	executorv1 "github.com/errandhq/errand/proto/gen/errand/executor/v1"

	"github.com/errandhq/errand/pkg/queue"
	"github.com/errandhq/errand/pkg/testkit"
)

const patience = 30 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func work(tenant string, n int) queue.Item {
	return queue.Item{Work: &executorv1.WorkItem{
		Tenant: tenant, Agent: "writer", TaskId: fmt.Sprintf("%s-task-%d", tenant, n), Version: 1, EnqueueCount: 1,
	}}
}

func works(tenant string, n int) []queue.Item {
	items := make([]queue.Item, n)
	for i := range items {
		items[i] = work(tenant, i)
	}
	return items
}

func newPublisher(t *testing.T, nc *nats.Conn) *queue.Publisher {
	t.Helper()
	require.NoError(t, queue.EnsureStream(within(t), nc, queue.StreamConfig{}))
	p, err := queue.NewPublisher(nc, queue.PublisherConfig{})
	require.NoError(t, err)
	return p
}

func publish(t *testing.T, p *queue.Publisher, items ...queue.Item) []queue.Result {
	t.Helper()
	results := p.Publish(within(t), items...)
	for _, result := range results {
		require.NoError(t, result.Err)
	}
	return results
}

// newConsumer starts a consumer of "writer" that ends with the test.
func newConsumer(t *testing.T, nc *nats.Conn, change ...func(*queue.ConsumerConfig)) *queue.Consumer {
	t.Helper()
	cfg := queue.ConsumerConfig{Agent: "writer", Logger: testkit.Logger(t)}
	for _, f := range change {
		f(&cfg)
	}
	c, err := queue.NewConsumer(nc, cfg)
	require.NoError(t, err)
	require.NoError(t, c.Start(within(t)))
	t.Cleanup(func() { require.NoError(t, c.Stop(context.Background())) })
	return c
}

// next takes and acknowledges deliveries.
func next(t *testing.T, c *queue.Consumer, free int) []string {
	t.Helper()
	deliveries, err := c.Next(within(t), free)
	require.NoError(t, err)
	require.NotEmpty(t, deliveries)
	require.LessOrEqual(t, len(deliveries), free)
	ids := make([]string, len(deliveries))
	for i, d := range deliveries {
		ids[i] = d.Item.GetTaskId()
		require.NoError(t, d.Ack())
	}
	return ids
}

// all takes n deliveries, and returns the sorted task ids.
func all(t *testing.T, c *queue.Consumer, n int) []string {
	t.Helper()
	var ids []string
	for len(ids) < n {
		ids = append(ids, next(t, c, n-len(ids))...)
	}
	slices.Sort(ids)
	return ids
}

func taskIDs(items []queue.Item) []string {
	ids := make([]string, len(items))
	for i, item := range items {
		ids[i] = item.Work.GetTaskId()
	}
	slices.Sort(ids)
	return ids
}

func requireEmpty(t *testing.T, nc *nats.Conn) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		depths, err := queue.Depths(t.Context(), nc, "writer")
		require.NoError(c, err)
		require.Empty(c, depths)
	}, patience, 5*time.Millisecond)
}

func stream(t *testing.T, nc *nats.Conn) jetstream.Stream {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	s, err := js.Stream(within(t), queue.Stream)
	require.NoError(t, err)
	return s
}
