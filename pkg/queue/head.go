package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	executorv1 "github.com/errandhq/errand/proto/gen/errand/executor/v1"

	"github.com/errandhq/errand/pkg/natsconn"
)

// ErrEmpty means that no work message waits.
var ErrEmpty = errors.New("the queue is empty")

// Head reads the oldest work message of an agent and tenant that the stream still
// holds, delivered but unacknowledged ones among them, or ErrEmpty. It costs the
// same for a long queue and a short one.
func Head(ctx context.Context, nc *nats.Conn, agent, tenant string) (*executorv1.WorkItem, error) {
	subject, err := workSubject(agent, tenant)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("open JetStream: %w", err)
	}
	stream, err := js.Stream(ctx, Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, ErrEmpty
	}
	if err != nil {
		return nil, fmt.Errorf("look up the work stream: %w", natsconn.Reason(err))
	}
	msg, err := stream.GetMsg(ctx, 1, jetstream.WithGetMsgSubject(subject))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, ErrEmpty
	}
	if err != nil {
		return nil, fmt.Errorf("read the oldest work message: %w", natsconn.Reason(err))
	}
	work := &executorv1.WorkItem{}
	if err := proto.Unmarshal(msg.Data, work); err != nil {
		return nil, fmt.Errorf("decode the oldest work message: %w", err)
	}
	return work, nil
}
