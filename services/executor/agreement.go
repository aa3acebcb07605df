package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/errandhq/errand/pkg/lifecycle"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
)

const agreementInterval = 2 * time.Second

var errNotAsked = errors.New("the task store has not answered yet")

// agreement asks the task store now and then whether it is there and has the
// same agents file. Until it has, the executor isn't ready.
type agreement struct {
	*lifecycle.Loop
	store   taskstorev1.TaskStoreServiceClient
	version string

	mu  sync.Mutex
	err error
}

func newAgreement(store taskstorev1.TaskStoreServiceClient, version string) *agreement {
	a := &agreement{store: store, version: version, err: errNotAsked}
	a.Loop = lifecycle.NewLoop(a.run)
	return a
}

// Ready tells what stands against working with the task store.
func (a *agreement) Ready() error {
	if err := a.Loop.Ready(); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

func (a *agreement) run(ctx context.Context) error {
	ticker := time.NewTicker(agreementInterval)
	defer ticker.Stop()
	for {
		err := a.ask(ctx)
		a.mu.Lock()
		a.err = err
		a.mu.Unlock()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (a *agreement) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, agreementInterval)
	defer cancel()
	info, err := a.store.GetInfo(ctx, &taskstorev1.GetInfoRequest{})
	if err != nil {
		return fmt.Errorf("ask the task store what it serves: %w", err)
	}
	if info.GetAgentsVersion() != a.version {
		return fmt.Errorf("the task store has version %s of the agents file, this executor %s", info.GetAgentsVersion(), a.version)
	}
	return nil
}
