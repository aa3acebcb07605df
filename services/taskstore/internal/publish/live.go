package publish

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/errandhq/errand/pkg/events"
)

const (
	// Events of one request to JetStream, and their bytes.
	sendEvents = 512
	sendBytes  = 8 << 20
	// How long NATS may take for one.
	sendTimeout = 15 * time.Second
	// While NATS is away it is tried again at growing, uneven intervals.
	retryMin = 100 * time.Millisecond
	retryMax = 5 * time.Second
	// How often the outcome of a transaction in doubt is looked for.
	doubtPoll = 500 * time.Millisecond
)

// eventLoop publishes events: from memory, or from the outbox when behind.
func (p *Publisher) eventLoop(ctx context.Context) error {
	poll := time.NewTicker(doubtPoll)
	defer poll.Stop()
	pause := retryMin
	for ctx.Err() == nil {
		came := p.eventsCame
		retry := (<-chan time.Time)(nil)
		if err := p.publishAll(ctx); err == nil {
			pause = retryMin
		} else if ctx.Err() == nil {
			p.Logger.WarnContext(ctx, "could not publish events; they wait in the outbox", "retry_in", pause, "error", err)
			came, retry = nil, time.After(pause/2+rand.N(pause/2))
			pause = min(2*pause, retryMax)
		}
		select {
		case <-ctx.Done():
		case <-came:
		case <-retry:
		case <-poll.C:
			p.resolveDoubts(ctx)
		}
	}
	return nil
}

// publishAll publishes until nothing is left that could be published now.
func (p *Publisher) publishAll(ctx context.Context) error {
	for ctx.Err() == nil {
		more, err := p.publishSome(ctx)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

func (p *Publisher) publishSome(ctx context.Context) (more bool, err error) {
	p.mu.Lock()
	behind := p.behind != nil
	sending := p.nextPending()
	p.mu.Unlock()
	if behind {
		return p.drain(ctx)
	}
	if len(sending) == 0 {
		return false, nil
	}
	var batch []events.Traced
	for _, c := range sending {
		batch = append(batch, c.events...)
	}
	err = p.send(ctx, batch)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.fallBehind()
		return false, err
	}
	p.sent(len(sending))
	return true, nil
}

// nextPending is the oldest commits, as many as fit in one request. They stay
// where they are until they are sent. p.mu is held.
func (p *Publisher) nextPending() []*commit {
	number, bytes := 0, 0
	for i, c := range p.pending {
		number += len(c.events)
		bytes += c.bytes
		if i > 0 && (number > sendEvents || bytes > sendBytes) {
			return p.pending[:i:i]
		}
	}
	return slices.Clip(p.pending)
}

// sent settles the n oldest commits, unless they were given up meanwhile because
// too many piled up behind them. p.mu is held.
func (p *Publisher) sent(n int) {
	if p.behind != nil {
		return
	}
	for _, c := range p.pending[:n] {
		p.ledger.settle(c.span)
		p.pendingBytes -= c.bytes
	}
	clear(p.pending[:n])
	p.pending = p.pending[n:]
}

func (p *Publisher) send(ctx context.Context, batch []events.Traced) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	return p.Events.PublishTraced(ctx, batch)
}
