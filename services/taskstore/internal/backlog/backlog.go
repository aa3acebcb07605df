// Package backlog estimates how many tasks of each agent wait for an executor, so
// that a task store can refuse new ones while there are too many.
//
// The estimate is the number of work messages, which costs the same for a queue of
// any length and is one for the whole cluster. It lags a little, and while nobody
// can tell it nothing is refused: taking a task is what the product is for.
package backlog

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/lifecycle"
)

const (
	// pause is between two counts. They take a tenth of the time at most.
	pause = 100 * time.Millisecond
	share = 10
	// countTimeout bounds one count.
	countTimeout = 2 * time.Second
	// An agent is counted again when this part of the room that it had has been taken
	// by this task store, as others take from it too.
	part = 8
)

// Options is what a Gauge needs. All fields are required.
type Options struct {
	Agents *config.Agents
	// Count tells how many tasks of an agent wait in the cluster.
	Count  func(ctx context.Context, agent string) (int, error)
	Logger *slog.Logger
}

// Gauge has the estimates. It is a lifecycle.Service.
type Gauge struct {
	*lifecycle.Loop
	Options
	wake chan struct{}

	mu     sync.Mutex
	agents map[string]*estimate
}

type estimate struct {
	limit int
	// As counted, and what has been added here since.
	waiting, added int
	due            bool
}

// New returns a gauge that refuses nothing before it is started.
func New(o Options) *Gauge {
	g := &Gauge{Options: o, wake: make(chan struct{}, 1), agents: map[string]*estimate{}}
	for _, a := range o.Agents.Agents {
		if a.MaxQueued > 0 {
			g.agents[a.Name] = &estimate{limit: a.MaxQueued}
		}
	}
	g.Loop = lifecycle.NewLoop(g.run)
	return g
}

// Full tells whether an agent has no room for the task that is about to be added.
func (g *Gauge) Full(agent string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.agents[agent]
	if e == nil {
		return false
	}
	full := e.full()
	if !full {
		e.added++
	}
	if full || e.added > (e.limit-e.waiting)/part {
		g.ask(e)
	}
	return full
}

func (e *estimate) full() bool { return e.waiting >= e.limit }

// ask has an agent counted soon. The lock is held.
func (g *Gauge) ask(e *estimate) {
	e.due = true
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

func (g *Gauge) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-g.wake:
		}
		began := time.Now()
		for name, e := range g.agents {
			g.count(ctx, name, e)
		}
		rest := time.NewTimer(max(pause, share*time.Since(began)))
		select {
		case <-ctx.Done():
		case <-rest.C:
		}
		rest.Stop()
	}
}

// count counts an agent that is due.
func (g *Gauge) count(ctx context.Context, name string, e *estimate) {
	if !g.begin(e) {
		return
	}
	limited, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	waiting, err := g.Count(limited, name)
	if err != nil {
		g.Logger.DebugContext(ctx, "the queue can't be counted; all tasks are taken", "agent", name, "error", err)
		waiting = 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	e.waiting = waiting
	if e.full() {
		g.ask(e) // or the first task after it has drained would be refused
	}
}

// begin tells whether an agent is due.
func (g *Gauge) begin(e *estimate) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	due := e.due
	if due {
		e.due, e.added = false, 0
	}
	return due
}
