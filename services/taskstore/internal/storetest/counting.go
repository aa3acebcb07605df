package storetest

import (
	"context"
	"sync"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

// rows counts what one update read and wrote.
type rows struct {
	tasks, artifacts                         int
	updates, messages, chunks, drops, events int
	contexts                                 int
}

// countingEngine tells what updates cost, in rows.
type countingEngine struct {
	engine.Engine

	mu   sync.Mutex
	cost rows
}

func (e *countingEngine) last() rows {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cost
}

// touched tells how many contexts the last update touched.
func (e *countingEngine) touched() int { return e.last().contexts }

// Update implements engine.Writer.
func (e *countingEngine) Update(
	ctx context.Context, sel engine.Selection, decide func(*engine.Loaded) (*engine.Changes, error),
) error {
	return e.Engine.Update(ctx, sel, func(l *engine.Loaded) (*engine.Changes, error) {
		c, err := decide(l)
		if err == nil {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.cost = rows{
				tasks: len(sel.Tasks), artifacts: len(sel.Artifacts), updates: len(c.UpdateTasks),
				messages: len(c.Messages), chunks: len(c.Chunks), drops: len(c.DropArtifacts), events: len(c.Events),
				contexts: len(c.TouchContexts),
			}
		}
		return c, err
	})
}
