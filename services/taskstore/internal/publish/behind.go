package publish

import (
	"context"
	"fmt"

	"github.com/errandhq/errand/pkg/events"
	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"google.golang.org/protobuf/proto"
)

// drainEvents is how many events are read from the outbox at once.
const drainEvents = 256

// backlog is what a publisher that fell behind has to drain.
type backlog struct {
	// Everything up to here is published.
	drained int64
	// Everything up to here has to be, before commits are kept in memory again.
	owed int64
}

// fallBehind gives the events in memory up to the outbox. p.mu is held.
func (p *Publisher) fallBehind() {
	if p.behind != nil {
		return
	}
	p.behind = &backlog{drained: p.ledger.mark()}
	for _, c := range p.pending {
		p.owe(c)
	}
	p.pending, p.pendingBytes = nil, 0
}

// owe leaves a commit to the outbox. p.mu is held.
func (p *Publisher) owe(c *commit) {
	p.behind.owed = max(p.behind.owed, c.span.last)
	p.ledger.settle(c.span)
}

// drain publishes the next events of the outbox, but none beyond a transaction
// that still runs: it could commit below what was drained.
func (p *Publisher) drain(ctx context.Context) (more bool, err error) {
	p.mu.Lock()
	after, until := p.behind.drained, p.ledger.quiet()
	p.mu.Unlock()
	if until > after {
		rows, err := p.Outbox.ReadOutbox(ctx, p.Name, after, drainEvents)
		if err != nil {
			return false, fmt.Errorf("read outbox: %w", err)
		}
		if len(rows) == drainEvents {
			until = min(until, rows[len(rows)-1].Seq)
		}
		if err := p.sendRows(ctx, rowsUntil(rows, until)); err != nil {
			return false, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.behind.drained = until
	if until >= p.behind.owed {
		p.behind = nil
	}
	return until > after, nil
}

func rowsUntil(rows []engine.Event, until int64) []engine.Event {
	for i, row := range rows {
		if row.Seq > until {
			return rows[:i]
		}
	}
	return rows
}

// sendRows publishes rows of the outbox and settles the doubts about them.
func (p *Publisher) sendRows(ctx context.Context, rows []engine.Event) error {
	batch, err := decode(rows)
	if err != nil {
		return err
	}
	if err := p.send(ctx, batch); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, row := range rows {
		p.foundInOutbox(row.Seq)
	}
	return nil
}

func decode(rows []engine.Event) ([]events.Traced, error) {
	batch := make([]events.Traced, len(rows))
	for i, row := range rows {
		batch[i].Event = &eventv1.Event{}
		if err := proto.Unmarshal(row.Data, batch[i].Event); err != nil {
			return nil, fmt.Errorf("decode event %d of task %s: %w", row.Version, row.TaskID, err)
		}
	}
	return batch, nil
}
