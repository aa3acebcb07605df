package publish

import (
	"context"
	"fmt"
	"time"
)

const (
	// How often a mark that moved is recorded.
	beatEvery = time.Second
	// How often a publisher that has nothing to say shows that it lives.
	beatAtLeast = 3 * time.Second
)

func (p *Publisher) beatLoop(ctx context.Context) error {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	var recorded int64
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		p.mu.Lock()
		mark, beaten := p.mark(), p.beaten
		p.mu.Unlock()
		if beaten && mark == recorded && time.Since(last) < beatAtLeast {
			continue
		}
		if err := p.beat(ctx); err != nil {
			if ctx.Err() == nil {
				p.Logger.WarnContext(ctx, "could not record what is published", "publisher", p.Name, "error", err)
			}
			continue
		}
		recorded, last = mark, time.Now()
	}
}

// beat records the mark.
func (p *Publisher) beat(ctx context.Context) error {
	p.mu.Lock()
	mark := p.mark()
	p.mu.Unlock()
	if err := p.Outbox.BeatPublisher(ctx, p.Name, mark, p.Now()); err != nil {
		return fmt.Errorf("record mark %d: %w", mark, err)
	}
	p.mu.Lock()
	p.beaten = true
	p.mu.Unlock()
	return nil
}
