package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	executorv1 "github.com/errandhq/errand/proto/gen/errand/executor/v1"

	"github.com/errandhq/errand/pkg/natsconn"
)

// Delivery is a work message that was handed to this executor. It comes again,
// to any executor, if neither Ack, Retry nor Term is called within the ack wait.
type Delivery struct {
	Item *executorv1.WorkItem
	// Redelivered says that an earlier delivery was not acknowledged.
	Redelivered bool

	msg jetstream.Msg
}

// Context returns ctx with the trace context that the message carries.
func (d Delivery) Context(ctx context.Context) context.Context {
	return natsconn.ExtractTrace(ctx, d.msg.Headers())
}

// Ack removes the message, once the claim has committed or was refused. A lost
// ack is harmless: the message comes again and its claim is refused.
func (d Delivery) Ack() error {
	if err := d.msg.Ack(); err != nil {
		return fmt.Errorf("acknowledge work: %w", natsconn.Reason(err))
	}
	return nil
}

// Retry gives the message back, to be delivered again after the delay.
func (d Delivery) Retry(delay time.Duration) error {
	if err := d.msg.NakWithDelay(delay); err != nil {
		return fmt.Errorf("give work back: %w", natsconn.Reason(err))
	}
	return nil
}

// Term removes a message that nobody can work on; the reason goes to the
// server's advisories.
func (d Delivery) Term(reason string) error {
	if err := d.msg.TermWithReason(reason); err != nil {
		return fmt.Errorf("terminate work: %w", natsconn.Reason(err))
	}
	return nil
}

// maxDeliveries is far above what outages of the task store need. What comes more
// often keeps ending its executors, or is never answered.
const maxDeliveries = 100

// Why a message is poison.
var (
	errUnreadable = errors.New("unreadable")
	errForeign    = errors.New("belongs to another agent or tenant")
	errTooOften   = errors.New("delivered too often")
)

// decode reads a work message that was fetched for (agent, tenant).
func decode(msg jetstream.Msg, agent, tenant string) (Delivery, error) {
	item, err := readItem(msg.Data(), agent, tenant)
	if err != nil {
		return Delivery{}, err
	}
	d := Delivery{Item: item, msg: msg}
	if meta, err := msg.Metadata(); err == nil {
		d.Redelivered = meta.NumDelivered > 1
		if meta.NumDelivered > maxDeliveries {
			return Delivery{}, errTooOften
		}
	}
	return d, nil
}

func readItem(data []byte, agent, tenant string) (*executorv1.WorkItem, error) {
	item := &executorv1.WorkItem{}
	if err := proto.Unmarshal(data, item); err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	if item.GetTaskId() == "" {
		return nil, fmt.Errorf("%w: names no task", errUnreadable)
	}
	if item.GetAgent() != agent || item.GetTenant() != tenant {
		return nil, errForeign
	}
	return item, nil
}
