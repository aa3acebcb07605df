package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Group is a Service made of parts: they start in the order in which they were
// added and stop in reverse. A part that ends by itself ends the group.
type Group struct {
	logger *slog.Logger
	parts  []part

	stopping chan struct{}
	stopOnce sync.Once
	done     chan struct{}
	watchers sync.WaitGroup

	// run is held while parts start or stop, so that Stop waits for Start.
	run     sync.Mutex
	stopped bool
	stopErr error

	mu      sync.Mutex
	started bool
	err     error
}

type part struct {
	name string
	Service
}

// NewGroup returns an empty group.
func NewGroup(logger *slog.Logger) *Group {
	return &Group{logger: logger, stopping: make(chan struct{}), done: make(chan struct{})}
}

// Add appends a part; its name stands in logs and errors. Parts are added
// before Start.
func (g *Group) Add(name string, s Service) {
	g.parts = append(g.parts, part{name: name, Service: s})
}

// AddCloser appends something that is open already and only needs closing.
func (g *Group) AddCloser(name string, stop func(ctx context.Context) error) {
	g.Add(name, &closer{stop: stop})
}

// Start starts the parts one after the other and ends at the first that fails.
// Stop is due also after a failed Start; called meanwhile, it ends the start.
func (g *Group) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-g.stopping:
			cancel(ErrStopped)
		case <-ctx.Done():
		}
	}()

	g.run.Lock()
	defer g.run.Unlock()
	if g.stopped {
		return ErrStopped
	}
	for _, p := range g.parts {
		if err := g.startPart(ctx, p); err != nil {
			return fmt.Errorf("start %s: %w", p.name, err)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.started = true
	return nil
}

func (g *Group) startPart(ctx context.Context, p part) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	begin := time.Now()
	if err := p.Start(ctx); err != nil {
		return err
	}
	g.logger.DebugContext(ctx, "started", "part", p.name, "duration", time.Since(begin))
	if ending, ok := p.Service.(Ending); ok {
		g.watchers.Go(func() { g.watch(p.name, ending) })
	}
	return nil
}

func (g *Group) watch(name string, s Ending) {
	select {
	case <-g.stopping:
	case <-s.Done():
		g.fail(name, s.Err())
	}
}

func (g *Group) fail(name string, err error) {
	select {
	case <-g.stopping:
		return
	default:
	}
	if err == nil {
		err = errors.New("ended without being told to")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		g.err = fmt.Errorf("%s: %w", name, err)
		close(g.done)
	}
}

// Stop stops all parts in reverse under ctx, also those that were never
// started, so that what a half-built process has opened is closed. When ctx
// ends, the remaining parts are stopped hard.
func (g *Group) Stop(ctx context.Context) error {
	g.stopOnce.Do(func() { close(g.stopping) })
	g.run.Lock()
	defer g.run.Unlock()
	if g.stopped {
		return g.stopErr
	}
	g.stopped = true
	g.watchers.Wait()
	var errs []error
	for _, p := range slices.Backward(g.parts) {
		begin := time.Now()
		if err := p.Stop(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", p.name, err))
		}
		g.logger.DebugContext(ctx, "stopped", "part", p.name, "duration", time.Since(begin))
	}
	g.stopErr = errors.Join(errs...)
	return g.stopErr
}

// Ready is the sum of the parts: nil when every part is ready, else what is
// wrong, by part.
func (g *Group) Ready() error {
	select {
	case <-g.stopping:
		return ErrStopped
	default:
	}
	g.mu.Lock()
	started, err := g.started, g.err
	g.mu.Unlock()
	if err != nil {
		return err
	}
	if !started {
		return ErrNotRunning
	}
	var errs []error
	for _, p := range g.parts {
		if err := p.Ready(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p.name, err))
		}
	}
	return errors.Join(errs...)
}

// Done is closed when a part has ended by itself; Err then names it.
func (g *Group) Done() <-chan struct{} { return g.done }

// Err is the error of the first part that ended by itself.
func (g *Group) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// Wait blocks until a part ends by itself, with its error, or until ctx ends, with nil.
func (g *Group) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-g.done:
		return g.Err()
	}
}

// Run is the whole life of a process: it starts the group, waits until ctx ends
// or a part fails, and stops everything, giving it grace to finish what it does.
func (g *Group) Run(ctx context.Context, grace time.Duration) error {
	err := g.Start(ctx)
	if err == nil {
		err = g.Wait(ctx)
	}
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	return errors.Join(err, g.Stop(stopCtx))
}

// closer is a part that is open from the beginning.
type closer struct {
	once sync.Once
	stop func(ctx context.Context) error
	err  error
}

func (c *closer) Start(context.Context) error { return nil }

func (c *closer) Stop(ctx context.Context) error {
	c.once.Do(func() { c.err = c.stop(ctx) })
	return c.err
}

func (c *closer) Ready() error { return nil }
