package events

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	executorv1 "github.com/errandhq/errand/proto/gen/errand/executor/v1"

	"github.com/errandhq/errand/pkg/natsconn"
)

// SendControl tells the holder of a lease something at once. It is not stored: a
// holder that doesn't hear it learns the same from its next heartbeat.
func SendControl(ctx context.Context, nc *nats.Conn, holder string, control *executorv1.Control) error {
	subject, err := natsconn.Subject(controlPrefix, holder)
	if err != nil {
		return fmt.Errorf("send control: %w", err)
	}
	data, err := proto.Marshal(control)
	if err != nil {
		return fmt.Errorf("encode control: %w", err)
	}
	msg := &nats.Msg{Subject: subject, Data: data}
	natsconn.InjectTrace(ctx, msg)
	if err := nc.PublishMsg(msg); err != nil {
		return fmt.Errorf("send control: %w", natsconn.Reason(err))
	}
	return nil
}

// SubscribeControl calls handler with what is sent to a holder, one call after
// the other. Unlike Subscribe it succeeds without a connection, and begins when
// there is one: control messages only speed things up.
func SubscribeControl(
	nc *nats.Conn, holder string, handler func(ctx context.Context, control *executorv1.Control),
) (*Subscription, error) {
	subject, err := natsconn.Subject(controlPrefix, holder)
	if err != nil {
		return nil, fmt.Errorf("subscribe to control: %w", err)
	}
	sub, err := nc.Subscribe(subject, func(msg *nats.Msg) {
		control := &executorv1.Control{}
		// The heartbeat brings what can't be read here.
		if err := proto.Unmarshal(msg.Data, control); err == nil {
			handler(natsconn.ExtractTrace(context.Background(), msg.Header), control)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("subscribe to control: %w", natsconn.Reason(err))
	}
	return &Subscription{sub: sub}, nil
}
