package launch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// restartPatience bounds the restart of one process.
const restartPatience = time.Minute

// Restart restarts the services until ctx ends: at each interval one process of
// each kind, in turn, and the next ones not before those are ready again. Told of
// each process before it is asked to end, a caller can print it.
func (c *Cluster) Restart(ctx context.Context, interval time.Duration, tell func(p *Process)) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for turn := 0; ; turn++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		err := restart(ctx, c.inTurn(turn), tell)
		if ctx.Err() != nil {
			return nil // what is half done now is for Stop
		}
		if err != nil {
			return fmt.Errorf("restart in turn: %w", err)
		}
	}
}

// inTurn is one process of each kind of service.
func (c *Cluster) inTurn(turn int) []*Process {
	var chosen []*Process
	byKind := map[Kind][]*Process{}
	for _, p := range c.Processes() {
		byKind[p.kind] = append(byKind[p.kind], p)
	}
	for _, kind := range []Kind{Gateway, Executor, Notifier, TaskStore} {
		if all := byKind[kind]; len(all) > 0 {
			chosen = append(chosen, all[turn%len(all)])
		}
	}
	return chosen
}

// restart restarts processes at the same time.
func restart(ctx context.Context, processes []*Process, tell func(p *Process)) error {
	ctx, cancel := context.WithTimeout(ctx, restartPatience)
	defer cancel()
	var all sync.WaitGroup
	errs := make([]error, len(processes))
	for i, p := range processes {
		tell(p)
		all.Go(func() { errs[i] = p.restart(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (p *Process) restart(ctx context.Context) error {
	if err := p.Terminate(ctx); err != nil {
		return err
	}
	if err := p.Start(ctx); err != nil {
		return err
	}
	return p.Ready(ctx)
}
