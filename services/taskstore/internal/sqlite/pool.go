package sqlite

import (
	"context"
	"fmt"
	"sync"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

// pool hands out connections, the one that was used last first: its cache is
// the warmest, and those that are never needed keep theirs empty.
type pool struct {
	// One for each idle connection.
	free   chan struct{}
	closed chan struct{}

	mu   sync.Mutex
	idle []*conn
}

// openPool opens size connections.
func openPool(ctx context.Context, size int, source string) (*pool, error) {
	p := &pool{free: make(chan struct{}, size), closed: make(chan struct{})}
	for range size {
		c, err := openConn(ctx, source)
		if err != nil {
			p.closeIdle()
			return nil, err
		}
		p.put(c)
	}
	return p, nil
}

// use runs f with a connection, when there is one.
func (p *pool) use(ctx context.Context, f func(*conn) error) error {
	select {
	case <-p.closed:
		return fmt.Errorf("%w: closed", engine.ErrUnavailable)
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.free:
	}
	c := p.take()
	defer p.put(c)
	return f(c)
}

func (p *pool) take() *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.idle) - 1
	c := p.idle[last]
	p.idle = p.idle[:last]
	return c
}

func (p *pool) put(c *conn) {
	p.mu.Lock()
	p.idle = append(p.idle, c)
	p.mu.Unlock()
	p.free <- struct{}{}
}

// close waits for the connections that are in use; what comes later fails.
func (p *pool) close() {
	close(p.closed)
	for range cap(p.free) {
		<-p.free
	}
	p.closeIdle()
}

func (p *pool) closeIdle() {
	for _, c := range p.idle {
		c.close()
	}
	p.idle = nil
}
