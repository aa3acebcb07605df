package main

import (
	"context"
	"fmt"
	"time"
)

const eraseLine = "\r\x1b[K"

// watching shows on a terminal that the command is alive, until the returned
// function is called.
func (c *console) watching(ctx context.Context) (stop func()) {
	if !c.errTerminal {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				c.redraw()
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
		c.doing("")
	}
}

// doing sets what the last line of the terminal shows.
func (c *console) doing(activity string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
	if c.since.IsZero() || activity == "" {
		c.since = time.Now()
	}
	c.activity = activity
}

func (c *console) redraw() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.activity == "" || c.midLine {
		return
	}
	fmt.Fprintf(c.err, "%s%s %s", eraseLine, c.activity, time.Since(c.since).Round(time.Second))
	c.drawn = true
}

// clear takes the last line away before something else is written.
func (c *console) clear() {
	if c.drawn {
		fmt.Fprint(c.err, eraseLine)
		c.drawn = false
	}
}
