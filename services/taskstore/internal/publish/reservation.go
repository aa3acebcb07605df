package publish

import (
	"context"

	"github.com/errandhq/errand/pkg/events"
	"github.com/errandhq/errand/services/taskstore/internal/store"
	"google.golang.org/protobuf/proto"
)

// reservation is one transaction.
type reservation struct {
	publisher *Publisher
	span      *span // nil for a transaction without events
	first     int64
}

// Reserve implements store.Publisher.
func (p *Publisher) Reserve(n int) store.Reservation {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := &reservation{publisher: p, first: p.ledger.last + 1}
	if n > 0 {
		r.span = p.ledger.take(n)
	}
	return r
}

// Publisher implements store.Reservation.
func (r *reservation) Publisher() string { return r.publisher.Name }

// First implements store.Reservation.
func (r *reservation) First() int64 { return r.first }

// Commit implements store.Reservation.
func (r *reservation) Commit(_ context.Context, notices []store.Notice) {
	p := r.publisher
	var c *commit
	if r.span != nil {
		c = newCommit(r.span, notices)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if c != nil {
		p.addEvents(c)
	}
	p.addHints(notices)
}

func newCommit(s *span, notices []store.Notice) *commit {
	c := &commit{span: s}
	for _, n := range notices {
		for _, e := range n.Events {
			c.events = append(c.events, events.Traced{Event: e, Trace: n.Trace})
			c.bytes += proto.Size(e)
		}
	}
	return c
}

// Abort implements store.Reservation.
func (r *reservation) Abort() {
	if r.span == nil {
		return
	}
	r.publisher.mu.Lock()
	defer r.publisher.mu.Unlock()
	r.publisher.ledger.settle(r.span)
	wake(r.publisher.eventsCame)
}

// Doubt implements store.Reservation.
func (r *reservation) Doubt() {
	if r.span == nil {
		return
	}
	r.publisher.mu.Lock()
	defer r.publisher.mu.Unlock()
	r.span.running = false
	r.publisher.doubts = append(r.publisher.doubts, &doubt{span: r.span})
	wake(r.publisher.eventsCame)
}

// addEvents takes what a transaction committed. p.mu is held.
func (p *Publisher) addEvents(c *commit) {
	c.span.running = false
	if p.behind == nil && p.pendingBytes+c.bytes > p.roomBytes {
		p.fallBehind()
	}
	if p.behind != nil {
		p.owe(c)
	} else {
		p.pending = append(p.pending, c)
		p.pendingBytes += c.bytes
	}
	wake(p.eventsCame)
}
