package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// Kinds end after those that use them.
var endOrder = [][]Kind{{Gateway}, {Executor, Notifier}, {TaskStore}, {NATS, Postgres}}

// killPatience bounds the end by force of one process.
const killPatience = 30 * time.Second

// Stop ends all processes, those that use others first, and what still runs when
// ctx ends by force. Data and logs stay. Stopping again does nothing.
func (c *Cluster) Stop(ctx context.Context) error {
	c.stopping.Do(func() { c.stopErr = c.stop(ctx) })
	return c.stopErr
}

func (c *Cluster) stop(ctx context.Context) error {
	c.network.healAll()
	var errs []error
	for _, kinds := range endOrder {
		errs = append(errs, c.end(ctx, kinds))
		if slices.Contains(kinds, Gateway) {
			c.front.http.close()
			c.front.grpc.close()
		}
	}
	c.network.close()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop the cluster: %w", errors.Join(err, c.lock.Close()))
	}
	// Who claims the folder meanwhile finds nobody alive in the record.
	if err := os.Remove(recordPath(c.cfg.Dir)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the record of the cluster: %w", err)
	}
	return c.lock.Close()
}

// end ends the processes of some kinds at the same time.
func (c *Cluster) end(ctx context.Context, kinds []Kind) error {
	var all sync.WaitGroup
	processes := c.Processes()
	errs := make([]error, len(processes))
	for i, p := range processes {
		if slices.Contains(kinds, p.kind) {
			all.Go(func() { errs[i] = p.end(ctx) })
		}
	}
	all.Wait()
	return errors.Join(errs...)
}

// end terminates the process, or kills it when ctx ends first.
func (p *Process) end(ctx context.Context) error {
	if p.Terminate(ctx) == nil {
		return nil
	}
	p.logger.Warn("a process has to be killed", "process", p.name)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killPatience)
	defer cancel()
	return p.Kill(ctx)
}
