package publish

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// doubt is a transaction of which nobody knows whether it committed.
type doubt struct {
	span *span
	// When the database was first seen to answer again, zero before: while it stands
	// still, so does the transaction.
	since time.Time
}

// resolveDoubts looks in the outbox for the events of transactions in doubt, and
// publishes those that are there. Those that don't come up are taken for aborted.
func (p *Publisher) resolveDoubts(ctx context.Context) {
	p.mu.Lock()
	doubts := slices.Clone(p.doubts)
	p.mu.Unlock()
	for _, d := range doubts {
		if err := p.resolve(ctx, d); err != nil {
			p.Logger.WarnContext(ctx, "the outcome of a transaction is still unknown", "publisher", p.Name, "error", err)
			return
		}
	}
}

func (p *Publisher) resolve(ctx context.Context, d *doubt) error {
	expired := !d.since.IsZero() && time.Since(d.since) > p.doubtTime
	rows, err := p.Outbox.ReadOutbox(ctx, p.Name, d.span.first-1, int(d.span.last-d.span.first)+1)
	if err != nil {
		return fmt.Errorf("read outbox: %w", err)
	}
	if d.since.IsZero() {
		d.since = time.Now()
	}
	if err := p.sendRows(ctx, rowsUntil(rows, d.span.last)); err != nil {
		return err
	}
	if expired {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.foundInOutbox(d.span.first)
	}
	return nil
}

// foundInOutbox ends the doubt about a number, if there is one: a transaction
// committed whole or not at all. p.mu is held.
func (p *Publisher) foundInOutbox(number int64) {
	p.doubts = slices.DeleteFunc(p.doubts, func(d *doubt) bool {
		if number < d.span.first || number > d.span.last {
			return false
		}
		p.ledger.settle(d.span)
		return true
	})
}
