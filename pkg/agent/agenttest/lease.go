package agenttest

import (
	"context"
	"time"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
)

// lease is a hold on one task whose writes are applied at once.
type lease struct {
	m        *memory
	r        *record
	claim    *taskstorev1.Claim
	appended chan struct{}
}

func (l *lease) Emit(_ context.Context, event *taskstorev1.TaskEvent) error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	return l.write(event)
}

func (l *lease) Flush(context.Context) error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	return l.held()
}

func (l *lease) Settle(_ context.Context, s agent.Settlement) error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if err := l.held(); err != nil {
		return err
	}
	if newest := l.r.messages[len(l.r.messages)-1].GetVersion(); newest > s.HandledVersion {
		return agent.ErrNewerMessage
	}
	if err := l.write(s.Event); err != nil {
		return err
	}
	l.r.handled, l.r.grant, l.r.lease = s.HandledVersion, s.Grant, nil
	return nil
}

func (l *lease) Release(_ context.Context, _ time.Duration, failed bool) error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if err := l.held(); err != nil {
		return err
	}
	if failed {
		l.r.attempt++
	}
	l.r.lease = nil
	return nil
}

func (l *lease) Appended() <-chan struct{} { return l.appended }

func (l *lease) write(event *taskstorev1.TaskEvent) error {
	if err := l.held(); err != nil {
		return err
	}
	l.r.apply(event)
	l.r.events = append(l.r.events, event)
	return nil
}

func (l *lease) held() error {
	switch {
	case l.r.task.GetStatus().GetState() == task.Canceled:
		return agent.ErrCanceled
	case l.r.lease != l:
		return agent.ErrLeaseLost
	default:
		return nil
	}
}

func (l *lease) notify() {
	select {
	case l.appended <- struct{}{}:
	default:
	}
}
