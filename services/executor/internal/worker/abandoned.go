package worker

import (
	"context"
	"fmt"
	"sync/atomic"
)

// abandoned bounds the handlers that go on although their contexts have ended. Of
// an agent with n slots n may run outside of any slot; one more keeps its slot until
// one of them ends, so that a process never has more than 2n handlers.
type abandoned struct {
	places chan struct{}
	// Slots that are kept.
	stuck atomic.Int64
}

func newAbandoned(n int) *abandoned { return &abandoned{places: make(chan struct{}, n)} }

// leave returns when the slot of a handler that ends some time may be given to
// others, or life is over. gone is called when the handler has ended.
func (a *abandoned) leave(life context.Context, ended <-chan struct{}, gone func()) {
	a.stuck.Add(1)
	defer a.stuck.Add(-1)
	select {
	case a.places <- struct{}{}:
		go func() {
			<-ended
			gone()
			<-a.places
		}()
	case <-ended:
		gone()
	case <-life.Done():
	}
}

// ready fails when each slot is kept by a handler that doesn't end: only a restart
// helps.
func (a *abandoned) ready() error {
	if n := cap(a.places); a.stuck.Load() == int64(n) && len(a.places) == n {
		return fmt.Errorf("all %d slots are kept by handlers that go on although their tasks have ended", n)
	}
	return nil
}
