package events

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"

	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/natsconn"
)

// feedBuffer is how many messages may wait for a feed's handler. Beyond it the
// newest are dropped, a hole like any other to the reader.
const feedBuffer = 8 << 10

// Feed receives the events of very many tasks: a subscription costs neither a
// goroutine nor a wait of its own. It is a lifecycle.Service.
type Feed struct {
	*lifecycle.Loop

	nc          *nats.Conn
	handler     func(*eventv1.Event)
	messages    chan *nats.Msg
	interrupted chan struct{}
}

// NewFeed returns a feed that calls handler, one call after the other, while it
// runs.
func NewFeed(nc *nats.Conn, handler func(event *eventv1.Event)) *Feed {
	f := &Feed{
		nc:          nc,
		handler:     handler,
		messages:    make(chan *nats.Msg, feedBuffer),
		interrupted: make(chan struct{}, 1),
	}
	f.Loop = lifecycle.NewLoop(f.run)
	return f
}

// Subscribe adds a task. Events come from some moment after the call; Flush
// waits for that.
func (f *Feed) Subscribe(tenant, taskID string) (*Subscription, error) {
	subject, err := natsconn.Subject(eventsPrefix, tenant, taskID)
	if err != nil {
		return nil, fmt.Errorf("subscribe to events: %w", err)
	}
	sub, err := f.nc.ChanSubscribe(subject, f.messages)
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", subject, natsconn.Reason(err))
	}
	return &Subscription{sub: sub}, nil
}

// Flush returns when NATS has all subscriptions that were made before. It fails
// at once while there is no connection: subscriptions are made when it is back,
// and Interrupted tells then.
func (f *Feed) Flush(ctx context.Context) error {
	if err := natsconn.Ready(f.nc); err != nil {
		return err
	}
	if err := f.nc.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("flush subscriptions: %w", natsconn.Reason(err))
	}
	return nil
}

// Interrupted has a value when the connection was lost and is back: events may
// have been missed in between.
func (f *Feed) Interrupted() <-chan struct{} { return f.interrupted }

func (f *Feed) run(ctx context.Context) error {
	status := f.nc.StatusChanged(nats.CONNECTED)
	defer f.nc.RemoveStatusListener(status)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case msg := <-f.messages:
			event := &eventv1.Event{}
			// What can't be read is a hole to the reader.
			if err := proto.Unmarshal(msg.Data, event); err == nil {
				f.handler(event)
			}
		case <-status:
			select {
			case f.interrupted <- struct{}{}:
			default:
			}
		}
	}
}
