package launch

import (
	"context"
	"sync"
	"time"
)

// reviveAfter is how long a process that ended by itself stays away.
const reviveAfter = time.Second

// Revive starts what ends by itself again, as an orchestrator does, until ctx ends.
// Told of each such process, a caller can print it.
func (c *Cluster) Revive(ctx context.Context, tell func(p *Process)) {
	var all sync.WaitGroup
	for _, p := range c.Processes() {
		all.Go(func() { p.revive(ctx, tell) })
	}
	all.Wait()
}

func (p *Process) revive(ctx context.Context, tell func(p *Process)) {
	for {
		r := p.last.Load()
		select {
		case <-r.ended:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(reviveAfter):
		case <-ctx.Done():
			return
		}
		// Who asked for the end decides what comes after it.
		if r.asked.Load() || p.last.Load() != r {
			continue
		}
		tell(p)
		if err := p.Start(ctx); err != nil {
			p.logger.Warn("could not start a process again", "process", p.name, "error", err)
		}
	}
}
