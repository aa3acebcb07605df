package queue

import (
	"context"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/metric"
	"google.golang.org/protobuf/proto"

	executorv1 "github.com/errandhq/errand/proto/gen/errand/executor/v1"

	"github.com/errandhq/errand/pkg/natsconn"
)

// Item is a queued task to tell executors of.
type Item struct {
	Work *executorv1.WorkItem
	// Traceparent (W3C) is the trace of the request that queued the task; empty
	// stands for the trace of Publish's context.
	Traceparent string
}

// Result says what became of an Item.
type Result struct {
	// Sequence is the message's place in the stream.
	Sequence uint64
	// Duplicate says that this very enqueueing, by its count, had been published
	// before; Sequence is then that of the earlier message. It may have been worked
	// on already, so it is no proof that a message is waiting.
	Duplicate bool
	Err       error
}

// PublisherConfig has the settings of a Publisher.
type PublisherConfig struct {
	Stream StreamConfig
	Meter  metric.Meter // nil: no metrics
}

// Publisher sends work messages.
type Publisher struct {
	nc      *nats.Conn
	stream  *natsconn.StreamPublisher
	metrics metrics
}

// NewPublisher returns a publisher on nc.
func NewPublisher(nc *nats.Conn, cfg PublisherConfig) (*Publisher, error) {
	stream, err := natsconn.NewStreamPublisher(nc, func(ctx context.Context) error {
		return EnsureStream(ctx, nc, cfg.Stream)
	})
	if err != nil {
		return nil, err
	}
	m, err := newMetrics(cfg.Meter)
	if err != nil {
		return nil, err
	}
	return &Publisher{nc: nc, stream: stream, metrics: m}, nil
}

// Publish stores the items in the work stream, all on their way at the same
// time, and then wakes the executors of each agent and tenant among them. The
// results are in the items' order.
func (p *Publisher) Publish(ctx context.Context, items ...Item) []Result {
	results := make([]Result, len(items))
	msgs := make([]*nats.Msg, 0, len(items))
	places := make([]int, 0, len(items))
	for i, item := range items {
		msg, err := encode(ctx, item)
		if err != nil {
			results[i].Err = err
			continue
		}
		msgs, places = append(msgs, msg), append(places, i)
	}
	wakes := map[string]uint64{}
	for i, ack := range p.stream.Publish(ctx, msgs) {
		work := items[places[i]].Work
		results[places[i]] = Result(ack)
		p.metrics.workPublished(ctx, work.GetAgent(), ack)
		if ack.Err == nil {
			subject := wakePrefix + "." + work.GetAgent() + "." + work.GetTenant()
			wakes[subject] = max(wakes[subject], ack.Sequence)
		}
	}
	for subject, sequence := range wakes {
		// A lost wake-up costs what is left of a second: consumers list the stream.
		_ = p.nc.Publish(subject, strconv.AppendUint(nil, sequence, 10))
	}
	return results
}

// wakeSequence reads up to which place in the stream a wake-up tells of work.
func wakeSequence(msg *nats.Msg) uint64 {
	sequence, err := strconv.ParseUint(string(msg.Data), 10, 64)
	if err != nil {
		return 0
	}
	return sequence
}

func encode(ctx context.Context, item Item) (*nats.Msg, error) {
	work := item.Work
	subject, err := workSubject(work.GetAgent(), work.GetTenant())
	if err != nil {
		return nil, err
	}
	data, err := proto.Marshal(work)
	if err != nil {
		return nil, fmt.Errorf("encode work item: %w", err)
	}
	msg := &nats.Msg{Subject: subject, Data: data, Header: nats.Header{}}
	msg.Header.Set(nats.MsgIdHdr, MessageID(work))
	natsconn.InjectTrace(natsconn.TraceContext(ctx, item.Traceparent), msg)
	return msg, nil
}

// MessageID names one enqueueing of a task: a task that is queued again, for its
// next turn or by the reaper, gets another id.
func MessageID(work *executorv1.WorkItem) string {
	return fmt.Sprintf("%s:%d:%d", work.GetTaskId(), work.GetVersion(), work.GetEnqueueCount())
}
