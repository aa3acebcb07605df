package natsconn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// publishWindow bounds the messages of one call that wait for their ack.
	publishWindow = 256
	// ackTimeout frees what waits for an ack that never comes.
	ackTimeout = 10 * time.Second
)

// Ack is what a stream answered to one message.
type Ack struct {
	// Sequence is the message's place in the stream; with Duplicate, that of the
	// earlier message with the same id.
	Sequence  uint64
	Duplicate bool
	Err       error
}

// StreamPublisher publishes to one stream, and makes the stream anew if it has
// gone, for instance because the server lost its disk.
type StreamPublisher struct {
	js     jetstream.JetStream
	ensure func(ctx context.Context) error
}

// NewStreamPublisher returns a publisher; ensure creates the stream.
func NewStreamPublisher(nc *nats.Conn, ensure func(ctx context.Context) error) (*StreamPublisher, error) {
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncTimeout(ackTimeout))
	if err != nil {
		return nil, fmt.Errorf("open JetStream: %w", err)
	}
	return &StreamPublisher{js: js, ensure: ensure}, nil
}

// Publish sends the messages without waiting in between, then waits for all
// acks, and returns one for each message, in order. Messages may be stored whose
// ack is an error, so repeat with the same message ids.
func (p *StreamPublisher) Publish(ctx context.Context, msgs []*nats.Msg) []Ack {
	acks := make([]Ack, len(msgs))
	for begin := 0; begin < len(msgs); begin += publishWindow {
		end := min(begin+publishWindow, len(msgs))
		p.publishWindow(ctx, msgs[begin:end], acks[begin:end])
	}
	return acks
}

func (p *StreamPublisher) publishWindow(ctx context.Context, msgs []*nats.Msg, acks []Ack) {
	p.publishOnce(ctx, msgs, acks)
	var again []*nats.Msg
	var places []int
	for i, ack := range acks {
		if isNoStream(ack.Err) {
			again, places = append(again, msgs[i]), append(places, i)
		}
	}
	if len(again) == 0 {
		return
	}
	results := make([]Ack, len(again))
	if err := p.ensure(ctx); err != nil {
		for i := range results {
			results[i].Err = fmt.Errorf("no stream takes the message: %w", err)
		}
	} else {
		p.publishOnce(ctx, again, results)
	}
	for i, place := range places {
		acks[place] = results[i]
	}
}

func (p *StreamPublisher) publishOnce(ctx context.Context, msgs []*nats.Msg, acks []Ack) {
	futures := make([]jetstream.PubAckFuture, len(msgs))
	for i, msg := range msgs {
		if ctx.Err() != nil {
			acks[i].Err = context.Cause(ctx)
			continue
		}
		// The client would hold on to a message that it can't send until the ack is
		// overdue.
		if err := Ready(p.js.Conn()); err != nil {
			acks[i].Err = err
			continue
		}
		// Without a stream there is nobody to wait for.
		future, err := p.js.PublishMsgAsync(msg, jetstream.WithRetryAttempts(0))
		if err != nil {
			acks[i].Err = Reason(err)
			continue
		}
		futures[i] = future
	}
	for i, future := range futures {
		if future != nil {
			acks[i] = awaitAck(ctx, future)
		}
	}
}

func awaitAck(ctx context.Context, future jetstream.PubAckFuture) Ack {
	select {
	case ack := <-future.Ok():
		return Ack{Sequence: ack.Sequence, Duplicate: ack.Duplicate}
	case err := <-future.Err():
		return Ack{Err: Reason(err)}
	case <-ctx.Done():
		return Ack{Err: context.Cause(ctx)}
	}
}

func isNoStream(err error) bool {
	return errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, jetstream.ErrStreamNotFound)
}

// Reason names the lost connection in errors of the NATS client that speak of
// their buffers instead.
func Reason(err error) error {
	if errors.Is(err, nats.ErrReconnectBufExceeded) || errors.Is(err, nats.ErrConnectionReconnecting) ||
		errors.Is(err, nats.ErrDisconnected) || errors.Is(err, nats.ErrConnectionClosed) {
		return fmt.Errorf("%w: %w", ErrDisconnected, err)
	}
	return err
}
