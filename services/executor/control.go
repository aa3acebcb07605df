package executor

import (
	"context"
	"sync"

	"github.com/errandhq/errand/pkg/events"
	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/natsconn"
	executorv1 "github.com/errandhq/errand/proto/gen/errand/executor/v1"
	"github.com/errandhq/errand/services/executor/internal/lease"
	"github.com/nats-io/nats.go"
)

// control hears at once what heartbeats would tell later: cancels and messages.
type control struct {
	nc     *nats.Conn
	holder string
	leases *lease.Manager

	mu      sync.Mutex
	sub     *events.Subscription
	stopped bool
}

func (c *control) Start(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return lifecycle.ErrStopped
	}
	if c.sub != nil {
		return nil
	}
	sub, err := events.SubscribeControl(c.nc, c.holder, func(_ context.Context, m *executorv1.Control) { c.leases.Handle(m) })
	if err != nil {
		return err
	}
	c.sub = sub
	return nil
}

func (c *control) Stop(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sub != nil && !c.stopped {
		c.sub.Close()
	}
	c.stopped = true
	return nil
}

func (c *control) Ready() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.stopped:
		return lifecycle.ErrStopped
	case c.sub == nil:
		return lifecycle.ErrNotRunning
	default:
		return natsconn.Ready(c.nc)
	}
}
