package queue_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executorv1 "github.com/errandhq/errand/proto/gen/errand/executor/v1"

	"github.com/errandhq/errand/pkg/queue"
	"github.com/errandhq/errand/pkg/testkit"
)

// BenchmarkWake is the way of one work message on an idle system, from the
// publish to the delivery.
func BenchmarkWake(b *testing.B) {
	nc := testkit.NATS(b)
	require.NoError(b, queue.EnsureStream(b.Context(), nc, queue.StreamConfig{}))
	p, err := queue.NewPublisher(nc, queue.PublisherConfig{})
	require.NoError(b, err)
	c, err := queue.NewConsumer(nc, queue.ConsumerConfig{Agent: "writer", Logger: testkit.Logger(b)})
	require.NoError(b, err)
	require.NoError(b, c.Start(b.Context()))
	b.Cleanup(func() { require.NoError(b, c.Stop(context.Background())) })
	deliver := make(chan time.Time)
	go func() {
		for {
			deliveries, err := c.Next(b.Context(), 16)
			if err != nil {
				return
			}
			for _, d := range deliveries {
				_ = d.Ack()
				deliver <- time.Now()
			}
		}
	}()
	run := fmt.Sprint(time.Now().UnixNano())
	n := 0
	for b.Loop() {
		n++
		p.Publish(b.Context(), queue.Item{Work: &executorv1.WorkItem{
			Tenant: "default", Agent: "writer", TaskId: run + fmt.Sprint(n), Version: 1, EnqueueCount: 1,
		}})
		<-deliver
	}
}

// BenchmarkPublish is the cost of one work message in a batch of 100.
func BenchmarkPublish(b *testing.B) {
	nc := testkit.NATS(b)
	require.NoError(b, queue.EnsureStream(b.Context(), nc, queue.StreamConfig{}))
	p, err := queue.NewPublisher(nc, queue.PublisherConfig{})
	require.NoError(b, err)
	n := 0
	items := make([]queue.Item, 0, 100)
	for b.Loop() {
		n++
		items = append(items, queue.Item{Work: &executorv1.WorkItem{
			Tenant: "default", Agent: "writer", TaskId: fmt.Sprint(n), Version: 1, EnqueueCount: 1,
		}})
		if len(items) == cap(items) {
			for _, result := range p.Publish(b.Context(), items...) {
				require.NoError(b, result.Err)
			}
			items = items[:0]
		}
	}
}
