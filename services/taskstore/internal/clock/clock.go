// Package clock gives all task stores of a database one time: the database's.
//
// A store asks the database for its time now and then and goes on from there by
// its own monotonic clock, so that neither the wall clocks of two machines nor a
// step of one of them counts.
package clock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/errandhq/errand/pkg/lifecycle"
)

const (
	// Between readings, and between tries while the first one fails.
	interval = time.Second
	retry    = 100 * time.Millisecond
	// A reading that takes longer tells too little: what the time was is known to
	// half of it.
	maxTaken = 200 * time.Millisecond
	timeout  = 2 * time.Second
	// jump is by how much a clock that only drifts can't be off.
	jump = time.Second
)

var errUnread = errors.New("the database's clock has not been read yet")

// Clock is a lifecycle.Service.
type Clock struct {
	*lifecycle.Loop
	read   func(ctx context.Context) (time.Time, error)
	logger *slog.Logger

	mu sync.Mutex
	// The time at a moment of the process's own clock.
	base time.Time
	at   time.Time
	// Whether base is the database's time.
	set bool
	// When the last jump was seen, by the process's own clock.
	jumped time.Time
}

// New returns a clock over the database's, which read asks for. Until the first
// reading it is the process's own.
func New(read func(ctx context.Context) (time.Time, error), logger *slog.Logger) *Clock {
	now := time.Now()
	c := &Clock{read: read, logger: logger, base: now.Round(0), at: now}
	c.Loop = lifecycle.NewLoop(c.run)
	return c
}

// Now is the database's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.base.Add(time.Since(c.at))
}

// Jumped is when the database's time was last seen to have jumped, by the
// process's own clock; zero for never. What was dated before then can't be
// compared with Now.
func (c *Clock) Jumped() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.jumped
}

// Start takes a first reading. It succeeds without one too.
func (c *Clock) Start(ctx context.Context) error {
	if err := c.adjust(ctx); err != nil {
		c.logger.WarnContext(ctx, "the database's clock could not be read", "error", err)
	}
	return c.Loop.Start(ctx)
}

// Ready fails until the database's clock has been read.
func (c *Clock) Ready() error {
	c.mu.Lock()
	set := c.set
	c.mu.Unlock()
	if !set {
		return errUnread
	}
	return c.Loop.Ready()
}

func (c *Clock) run(ctx context.Context) error {
	wait := interval
	for {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
		// A database that is away is told by what needs it; the time goes on.
		_ = c.adjust(ctx)
		if wait = retry; c.isSet() {
			wait = interval
		}
	}
}

func (c *Clock) isSet() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.set
}

// adjust reads the database's clock once.
func (c *Clock) adjust(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	begun := time.Now()
	read, err := c.read(ctx)
	if err != nil {
		return fmt.Errorf("read the database's clock: %w", err)
	}
	now := time.Now()
	taken := now.Sub(begun)
	c.mu.Lock()
	defer c.mu.Unlock()
	if taken > maxTaken && c.set {
		return nil
	}
	then := read.Add(taken / 2)
	off := then.Sub(c.base.Add(now.Sub(c.at)))
	if c.set && off.Abs() > jump {
		c.jumped = now
		c.logger.WarnContext(ctx, "the database's clock jumped", "by", off)
	}
	c.base, c.at, c.set = then, now, true
	return nil
}
