package sqlite

import (
	"context"
	"fmt"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

// Update implements engine.Writer. The one writer needs no row locks.
func (e *Engine) Update(ctx context.Context, sel engine.Selection, decide func(*engine.Loaded) (*engine.Changes, error)) error {
	return e.write(ctx, func(c *conn) error {
		loaded, err := load(c, sel)
		if err != nil {
			return fmt.Errorf("load: %w", err)
		}
		changes, err := decide(loaded)
		if err != nil {
			return err
		}
		return store(c, changes)
	})
}

// each applies f to every item.
func each[T any](items []T, f func(T) error) error {
	for _, item := range items {
		if err := f(item); err != nil {
			return err
		}
	}
	return nil
}
