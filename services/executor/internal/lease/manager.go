// Package lease holds an executor's leases: it renews them, writes under them,
// and tells their holders when they end.
//
// A lease is trusted from the start of the attempt that got it until some time
// before it expires in the store. When it can't be renewed by then its handler
// is stopped, before the store may give the task to another executor. That is a
// courtesy to the world outside: the store itself refuses every write whose
// lease epoch is not the task's.
package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/pkg/lifecycle"
	executorv1 "github.com/errandhq/errand/proto/gen/errand/executor/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/executor/internal/batch"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	// flights is how many batches of writes may be on their way: more would make
	// batches smaller, fewer would let one slow call hold up all tasks.
	flights     = 4
	maxWrites   = 256
	callTimeout = 30 * time.Second
)

// Config says what a Manager needs.
type Config struct {
	Store taskstorev1.TaskStoreServiceClient
	// Names this process to the store; no other process ever has the same.
	Holder string
	// Between heartbeats: a third of the shortest lease.
	Heartbeat time.Duration
	// Bounds a call of many writes, in bytes.
	MaxCallBytes int
	Logger       *slog.Logger
}

// Manager holds all leases of a process.
type Manager struct {
	cfg      Config
	writes   *batch.Group[*taskstorev1.TaskWrite, *taskstorev1.WriteResult]
	releases *batch.Group[*taskstorev1.Release, *taskstorev1.ReleaseResult]
	loop     *lifecycle.Loop

	mu     sync.Mutex
	leases map[key]*Lease
}

// key names a lease: a task may be claimed again by the process that lost it.
type key struct {
	taskID string
	epoch  int64
}

// NewManager returns a manager without leases.
func NewManager(cfg Config) *Manager {
	m := &Manager{cfg: cfg, leases: make(map[key]*Lease)}
	m.writes = batch.New(batch.Config[*taskstorev1.TaskWrite, *taskstorev1.WriteResult]{
		Call: m.write, Flights: flights, Timeout: callTimeout, Count: maxWrites, Size: cfg.MaxCallBytes,
		SizeOf: func(w *taskstorev1.TaskWrite) int { return proto.Size(w) },
	})
	m.releases = batch.New(batch.Config[*taskstorev1.Release, *taskstorev1.ReleaseResult]{
		Call: m.release, Flights: 1, Timeout: callTimeout, Count: maxWrites, Size: cfg.MaxCallBytes,
		SizeOf: func(r *taskstorev1.Release) int { return proto.Size(r) },
	})
	m.loop = lifecycle.NewLoop(m.beat)
	return m
}

// Start begins to renew leases.
func (m *Manager) Start(ctx context.Context) error { return m.loop.Start(ctx) }

// Stop ends the renewals and waits for calls that are on their way; what is
// still held lapses. It is for after the last lease was closed.
func (m *Manager) Stop(ctx context.Context) error {
	err := m.loop.Stop(ctx)
	landed := make(chan struct{})
	go func() {
		defer close(landed)
		m.writes.Wait()
		m.releases.Wait()
	}()
	select {
	case <-landed:
		return err
	case <-ctx.Done():
		return errors.Join(err, fmt.Errorf("wait for writes to end: %w", context.Cause(ctx)))
	}
}

// Ready tells whether leases are being renewed.
func (m *Manager) Ready() error { return m.loop.Ready() }

// Hold takes up a claim that was asked for at begun and holds for duration
// without a heartbeat. The caller ends it with Close. A claim whose answer took
// long is renewed at once: given up, it would lapse and cost an attempt, and a
// store that is slow would get the same work again.
func (m *Manager) Hold(ctx context.Context, claim *taskstorev1.Claim, begun time.Time, duration time.Duration) *Lease {
	l := newLease(ctx, m, claim, duration)
	m.mu.Lock()
	m.leases[l.key()] = l
	m.mu.Unlock()
	if time.Since(begun) > duration/2 {
		m.renewSome(ctx, []*Lease{l}, duration)
	}
	l.trust(begun)
	return l
}

// Handle passes a control message to the lease that it is for.
func (m *Manager) Handle(c *executorv1.Control) {
	m.mu.Lock()
	l := m.leases[key{c.GetTaskId(), c.GetLeaseEpoch()}]
	m.mu.Unlock()
	if l == nil {
		return
	}
	switch kind := c.GetKind().(type) {
	case *executorv1.Control_Canceled:
		l.lose(&agent.CanceledError{Metadata: kind.Canceled.GetMetadata()})
	case *executorv1.Control_Overrun:
		l.lose(agent.ErrMaxRuntime)
	case *executorv1.Control_MessageAppended:
		l.notify(kind.MessageAppended.GetVersion())
	}
}

// Disown gives back, without using an attempt up, a task that the store says this
// process holds under an epoch that it knows nothing of: the answer to a claim got
// lost.
func (m *Manager) Disown(ctx context.Context, taskID string, epoch int64) error {
	result, err := m.releases.Do(ctx, &taskstorev1.Release{Lease: &taskstorev1.LeaseRef{TaskId: taskID, LeaseEpoch: epoch}})
	if err == nil && result.GetRefusal() == taskstorev1.Refusal_REFUSAL_UNAVAILABLE {
		err = errUnavailable
	}
	return err
}

func (m *Manager) drop(l *Lease) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.leases, l.key())
}

var errAnswers = errors.New("the task store answered another number of items")

func (m *Manager) write(ctx context.Context, writes []*taskstorev1.TaskWrite) ([]*taskstorev1.WriteResult, error) {
	answer, err := m.cfg.Store.WriteEvents(ctx, &taskstorev1.WriteEventsRequest{Holder: m.cfg.Holder, Writes: writes})
	if err == nil && len(answer.GetResults()) != len(writes) {
		err = errAnswers
	}
	if err != nil {
		return nil, fmt.Errorf("write events of %d tasks: %w", len(writes), err)
	}
	return answer.GetResults(), nil
}

func (m *Manager) release(ctx context.Context, releases []*taskstorev1.Release) ([]*taskstorev1.ReleaseResult, error) {
	answer, err := m.cfg.Store.ReleaseTasks(ctx, &taskstorev1.ReleaseTasksRequest{Holder: m.cfg.Holder, Releases: releases})
	if err == nil && len(answer.GetResults()) != len(releases) {
		err = errAnswers
	}
	if err != nil {
		return nil, fmt.Errorf("release %d tasks: %w", len(releases), err)
	}
	return answer.GetResults(), nil
}

func (m *Manager) renew(ctx context.Context, refs []*taskstorev1.LeaseRef, lease time.Duration) ([]*taskstorev1.RenewResult, error) {
	answer, err := m.cfg.Store.RenewLeases(ctx, &taskstorev1.RenewLeasesRequest{
		Holder: m.cfg.Holder, Lease: durationpb.New(lease), Leases: refs,
	})
	if err == nil && len(answer.GetResults()) != len(refs) {
		err = errAnswers
	}
	if err != nil {
		return nil, fmt.Errorf("renew %d leases: %w", len(refs), err)
	}
	return answer.GetResults(), nil
}
