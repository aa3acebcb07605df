package launch

import (
	"context"
	"sync"
)

// gate is passed freely while it is open, as it is at first.
type gate struct {
	mu sync.Mutex
	// opened is nil while the gate is open, else closed when it opens.
	opened chan struct{}
}

func (g *gate) set(open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case open && g.opened != nil:
		close(g.opened)
		g.opened = nil
	case !open && g.opened == nil:
		g.opened = make(chan struct{})
	}
}

// pass waits until the gate is open.
func (g *gate) pass(ctx context.Context) error {
	for {
		g.mu.Lock()
		opened := g.opened
		g.mu.Unlock()
		if opened == nil {
			return nil
		}
		select {
		case <-opened:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
