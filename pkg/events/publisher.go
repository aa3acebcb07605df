package events

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/proto"

	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"

	"github.com/errandhq/errand/pkg/natsconn"
	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/pkg/telemetry"
)

// PublisherConfig has the settings of a Publisher.
type PublisherConfig struct {
	Stream StreamConfig
	// Purger, if set, is told of every task whose terminal event was published.
	Purger *Purger
	Meter  metric.Meter // nil: no metrics
}

// Publisher publishes events of the log.
type Publisher struct {
	stream    *natsconn.StreamPublisher
	purger    *Purger
	published metric.Int64Counter
}

// NewPublisher returns a publisher on nc.
func NewPublisher(nc *nats.Conn, cfg PublisherConfig) (*Publisher, error) {
	stream, err := natsconn.NewStreamPublisher(nc, func(ctx context.Context) error {
		return EnsureStream(ctx, nc, cfg.Stream)
	})
	if err != nil {
		return nil, err
	}
	if cfg.Meter == nil {
		cfg.Meter = noop.Meter{}
	}
	published, err := cfg.Meter.Int64Counter(telemetry.MetricEventPublished,
		metric.WithDescription("Events published on NATS."))
	if err != nil {
		return nil, fmt.Errorf("create the event publisher's metrics: %w", err)
	}
	return &Publisher{stream: stream, purger: cfg.Purger, published: published}, nil
}

// Traced is an event with the trace of the request that caused it, if one is
// known.
type Traced struct {
	Event *eventv1.Event
	Trace trace.SpanContext
}

// Publish is PublishTraced for events of ctx's own trace.
func (p *Publisher) Publish(ctx context.Context, batch []*eventv1.Event) error {
	traced := make([]Traced, len(batch))
	for i, event := range batch {
		traced[i] = Traced{Event: event, Trace: trace.SpanContextFromContext(ctx)}
	}
	return p.PublishTraced(ctx, traced)
}

// PublishTraced stores the events in the event stream, all on their way at the
// same time, and waits until the stream has them. After an error some may be
// stored; publishing all of them again is harmless, their ids drop repeats.
func (p *Publisher) PublishTraced(ctx context.Context, batch []Traced) error {
	msgs := make([]*nats.Msg, len(batch))
	for i, traced := range batch {
		msg, err := encode(trace.ContextWithRemoteSpanContext(ctx, traced.Trace), traced.Event)
		if err != nil {
			return err
		}
		msgs[i] = msg
	}
	failed, firstErr := 0, error(nil)
	for i, ack := range p.stream.Publish(ctx, msgs) {
		if ack.Err != nil {
			failed++
			if firstErr == nil {
				firstErr = ack.Err
			}
			continue
		}
		event := batch[i].Event
		if p.purger != nil && task.Terminal(event.GetStatusUpdate().GetStatus().GetState()) {
			p.purger.Add(event.GetTenant(), event.GetTaskId())
		}
	}
	p.published.Add(ctx, int64(len(batch)-failed))
	if firstErr != nil {
		return fmt.Errorf("publish %d of %d events: %w", failed, len(batch), firstErr)
	}
	return nil
}

func encode(ctx context.Context, event *eventv1.Event) (*nats.Msg, error) {
	subject, err := natsconn.Subject(eventsPrefix, event.GetTenant(), event.GetTaskId())
	if err != nil {
		return nil, fmt.Errorf("publish event: %w", err)
	}
	if proto.Size(event) > MaxInline {
		event = header(event)
	}
	data, err := proto.Marshal(event)
	if err != nil {
		return nil, fmt.Errorf("encode event: %w", err)
	}
	msg := &nats.Msg{Subject: subject, Data: data, Header: nats.Header{}}
	msg.Header.Set(nats.MsgIdHdr, fmt.Sprintf("%s:%d", event.GetTaskId(), event.GetVersion()))
	natsconn.InjectTrace(ctx, msg)
	return msg, nil
}

// header is the event without what happened.
func header(event *eventv1.Event) *eventv1.Event {
	return &eventv1.Event{
		Tenant: event.GetTenant(), Agent: event.GetAgent(), TaskId: event.GetTaskId(), ContextId: event.GetContextId(),
		Version: event.GetVersion(), Time: event.GetTime(),
	}
}
