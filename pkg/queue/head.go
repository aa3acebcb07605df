package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	executorv1 "github.com/errandhq/errand/proto/gen/errand/executor/v1"

	"github.com/errandhq/errand/pkg/natsconn"
)

// ErrEmpty means that no work message waits.
var ErrEmpty = errors.New("the queue is empty")

// Oldest is the oldest work message of a queue.
type Oldest struct {
	*executorv1.WorkItem // nil if it can't be read

	// Sequence is the message's place in the stream.
	Sequence uint64
	// Time is when the stream got it, by the server's clock.
	Time time.Time
}

// Head reads the oldest work message of an agent and tenant that the stream still
// holds, delivered but unacknowledged ones among them, or ErrEmpty. It costs the
// same for a long queue and a short one.
func Head(ctx context.Context, nc *nats.Conn, agent, tenant string) (Oldest, error) {
	subject, err := workSubject(agent, tenant)
	if err != nil {
		return Oldest{}, err
	}
	stream, err := workStream(ctx, nc)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return Oldest{}, ErrEmpty
	}
	if err != nil {
		return Oldest{}, err
	}
	msg, err := stream.GetMsg(ctx, 1, jetstream.WithGetMsgSubject(subject))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return Oldest{}, ErrEmpty
	}
	if err != nil {
		return Oldest{}, fmt.Errorf("read the oldest work message: %w", natsconn.Reason(err))
	}
	head := Oldest{WorkItem: &executorv1.WorkItem{}, Sequence: msg.Sequence, Time: msg.Time}
	if err := proto.Unmarshal(msg.Data, head.WorkItem); err != nil {
		head.WorkItem = nil
	}
	return head, nil
}

// Remove takes a message out of the stream, which may be gone already.
func Remove(ctx context.Context, nc *nats.Conn, sequence uint64) error {
	stream, err := workStream(ctx, nc)
	if err == nil {
		err = stream.DeleteMsg(ctx, sequence)
	}
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) && !errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful) {
		return fmt.Errorf("remove a work message: %w", natsconn.Reason(err))
	}
	return nil
}

func workStream(ctx context.Context, nc *nats.Conn) (jetstream.Stream, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("open JetStream: %w", err)
	}
	stream, err := js.Stream(ctx, Stream)
	if err != nil {
		return nil, fmt.Errorf("look up the work stream: %w", natsconn.Reason(err))
	}
	return stream, nil
}
