package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	executorv1 "github.com/errandhq/errand/proto/gen/errand/executor/v1"

	"github.com/errandhq/errand/pkg/natsconn"
	"github.com/errandhq/errand/pkg/task"
)

var (
	// ErrNoExecutor means that no executor of the agent is there to answer.
	ErrNoExecutor = errors.New("no executor serves this agent")
	// ErrTooLarge means that a request exceeds what one NATS message can carry.
	ErrTooLarge = errors.New("the message is too large to be asked directly")
)

// timeoutHeader carries how long the asking side will wait, in milliseconds: a
// duration, since clocks differ.
const timeoutHeader = "Errand-Timeout"

// Direct asks executors for direct Messages.
type Direct struct{ nc *nats.Conn }

// NewDirect returns the asking side on nc.
func NewDirect(nc *nats.Conn) *Direct { return &Direct{nc: nc} }

// Request asks one executor of the request's agent and waits for its reply until
// ctx ends. Nothing is stored or repeated. Without an executor it fails at once
// with ErrNoExecutor; a busy executor's reply has a failure of KIND_BUSY.
func (d *Direct) Request(ctx context.Context, req *executorv1.DirectRequest) (*executorv1.DirectReply, error) {
	if !task.ValidName(req.GetAgent()) {
		return nil, fmt.Errorf("agent %.*q: %w", task.MaxName, req.GetAgent(), ErrBadName)
	}
	data, err := proto.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("encode direct request: %w", err)
	}
	msg := &nats.Msg{Subject: directPrefix + "." + req.GetAgent(), Data: data, Header: nats.Header{}}
	natsconn.InjectTrace(ctx, msg)
	if deadline, ok := ctx.Deadline(); ok {
		msg.Header.Set(timeoutHeader, strconv.FormatInt(time.Until(deadline).Milliseconds(), 10))
	}
	answer, err := d.nc.RequestMsgWithContext(ctx, msg)
	if err != nil {
		return nil, fmt.Errorf("ask an executor: %w", directError(err))
	}
	reply := &executorv1.DirectReply{}
	if err := proto.Unmarshal(answer.Data, reply); err != nil {
		return nil, fmt.Errorf("decode direct reply: %w", err)
	}
	return reply, nil
}

func directError(err error) error {
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return ErrNoExecutor
	case errors.Is(err, nats.ErrMaxPayload):
		return ErrTooLarge
	}
	return natsconn.Reason(err)
}
