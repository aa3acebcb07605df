// Package batch lets calls that are made at the same time share one. An idle
// call goes out at once and alone; calls that come while enough are on their way
// wait and go out together.
package batch

import (
	"context"
	"sync"
	"time"
)

// Config says how calls are shared.
type Config[Q, R any] struct {
	// Call answers a batch: one answer for each question, in order. Its context
	// has the values of the first question's, and doesn't end with any.
	Call func(ctx context.Context, questions []Q) ([]R, error)
	// Flights is how many batches may be on their way at the same time, each for
	// so long at most.
	Flights int
	Timeout time.Duration
	// Count and Size bound a batch; a single question may be larger.
	Count  int
	Size   int
	SizeOf func(Q) int
}

// Group shares calls.
type Group[Q, R any] struct {
	cfg Config[Q, R]

	mu      sync.Mutex
	waiting []*entry[Q, R]
	flying  int
	flights sync.WaitGroup
}

type entry[Q, R any] struct {
	ctx      context.Context //nolint:containedctx // of the caller, for its trace
	question Q
	answer   R
	err      error
	done     chan struct{}
}

// New returns a group without calls.
func New[Q, R any](cfg Config[Q, R]) *Group[Q, R] {
	return &Group[Q, R]{cfg: cfg}
}

// Do asks one question as part of a batch. When ctx ends first the question may
// still be asked.
func (g *Group[Q, R]) Do(ctx context.Context, question Q) (R, error) {
	if ctx.Err() != nil {
		var none R
		return none, context.Cause(ctx)
	}
	e := &entry[Q, R]{ctx: ctx, question: question, done: make(chan struct{})}
	g.mu.Lock()
	g.waiting = append(g.waiting, e)
	if g.flying < g.cfg.Flights {
		g.flying++
		g.flights.Go(g.fly)
	}
	g.mu.Unlock()
	select {
	case <-e.done:
		return e.answer, e.err
	case <-ctx.Done():
		var none R
		return none, context.Cause(ctx)
	}
}

// Wait waits until no batch is on its way. It is for after the last question.
func (g *Group[Q, R]) Wait() { g.flights.Wait() }

// fly asks what is waiting until nothing is.
func (g *Group[Q, R]) fly() {
	for {
		entries := g.take()
		if len(entries) == 0 {
			return
		}
		questions := make([]Q, len(entries))
		for i, e := range entries {
			questions[i] = e.question
		}
		answers, err := g.call(entries[0].ctx, questions)
		for i, e := range entries {
			if e.err = err; err == nil {
				e.answer = answers[i]
			}
			close(e.done)
		}
	}
}

func (g *Group[Q, R]) call(first context.Context, questions []Q) ([]R, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(first), g.cfg.Timeout)
	defer cancel()
	return g.cfg.Call(ctx, questions)
}

// take removes the next batch from what is waiting; an empty one ends a flight.
func (g *Group[Q, R]) take() []*entry[Q, R] {
	g.mu.Lock()
	defer g.mu.Unlock()
	size, n := 0, 0
	for n < len(g.waiting) && n < g.cfg.Count {
		size += g.cfg.SizeOf(g.waiting[n].question)
		if n > 0 && size > g.cfg.Size {
			break
		}
		n++
	}
	batch := g.waiting[:n:n]
	g.waiting = g.waiting[n:]
	if n == 0 {
		g.waiting = nil
		g.flying--
	}
	return batch
}
