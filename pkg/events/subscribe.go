package events

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"

	"github.com/errandhq/errand/pkg/natsconn"
)

const (
	flushTimeout = 5 * time.Second

	// What a subscription holds that its handler has not taken yet. Beyond it the
	// newest are dropped, which the reader sees as a hole and fills from the store.
	maxPendingMsgs  = 4096
	maxPendingBytes = 16 << 20
)

// Subscription is a live subscription.
type Subscription struct{ sub *nats.Subscription }

// Subscribe calls handler with every event of a task that is published from now
// on; "now" is before Subscribe returns, so what is read from the store after
// that has no gap to the first event. Calls come one after the other; the
// context carries the publisher's trace. It fails when NATS doesn't confirm in
// time.
func Subscribe(
	ctx context.Context, nc *nats.Conn, tenant, taskID string, handler func(ctx context.Context, event *eventv1.Event),
) (*Subscription, error) {
	subject, err := natsconn.Subject(eventsPrefix, tenant, taskID)
	if err != nil {
		return nil, fmt.Errorf("subscribe to events: %w", err)
	}
	return subscribe(ctx, nc, subject, func(ctx context.Context, msg *nats.Msg) {
		event := &eventv1.Event{}
		// What can't be read is a hole like any other to the reader.
		if err := proto.Unmarshal(msg.Data, event); err == nil && event.GetTaskId() == taskID {
			handler(ctx, event)
		}
	})
}

func subscribe(
	ctx context.Context, nc *nats.Conn, subject string, handler func(ctx context.Context, msg *nats.Msg),
) (*Subscription, error) {
	values := context.WithoutCancel(ctx)
	sub, err := nc.Subscribe(subject, func(msg *nats.Msg) {
		handler(natsconn.ExtractTrace(values, msg.Header), msg)
	})
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", subject, natsconn.Reason(err))
	}
	s := &Subscription{sub: sub}
	if err := sub.SetPendingLimits(maxPendingMsgs, maxPendingBytes); err != nil {
		s.Close()
		return nil, fmt.Errorf("subscribe to %s: %w", subject, natsconn.Reason(err))
	}
	flushCtx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	if err := nc.FlushWithContext(flushCtx); err != nil {
		s.Close()
		return nil, fmt.Errorf("subscribe to %s: %w", subject, natsconn.Reason(err))
	}
	return s, nil
}

// Close ends the subscription; a call of the handler may still be going on.
func (s *Subscription) Close() {
	// It fails when the subscription or its connection is closed already.
	_ = s.sub.Unsubscribe()
}
