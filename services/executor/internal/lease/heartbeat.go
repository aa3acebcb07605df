package lease

import (
	"context"
	"time"

	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
)

// beat renews all leases now and then, until ctx ends.
func (m *Manager) beat(ctx context.Context) error {
	ticker := time.NewTicker(m.cfg.Heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
			m.renewAll(ctx)
		}
	}
}

// renewAll renews every lease: one call, or one for each duration if agents of
// this process have different ones.
func (m *Manager) renewAll(ctx context.Context) {
	byDuration := make(map[time.Duration][]*Lease)
	m.mu.Lock()
	for _, l := range m.leases {
		byDuration[l.duration] = append(byDuration[l.duration], l)
	}
	m.mu.Unlock()
	for duration, leases := range byDuration {
		m.renewSome(ctx, leases, duration)
	}
}

func (m *Manager) renewSome(ctx context.Context, leases []*Lease, duration time.Duration) {
	refs := make([]*taskstorev1.LeaseRef, len(leases))
	for i, l := range leases {
		refs[i] = l.ref
	}
	// The store counts from a later moment, so trust ends before the lease does
	// however long the answer takes.
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, m.cfg.Heartbeat)
	defer cancel()
	results, err := m.renew(ctx, refs, duration)
	if err != nil {
		m.cfg.Logger.WarnContext(ctx, "leases were not renewed", "error", err, "leases", len(leases))
		return
	}
	for i, l := range leases {
		switch refusal := results[i].GetRefusal(); {
		case refusal == taskstorev1.Refusal_REFUSAL_UNSPECIFIED:
			l.trust(begun)
			l.notify(results[i].GetMessageVersion())
		case l.isWriting(), l.isOver():
			// The write may be the one that ended the lease, and has the answer itself.
		default:
			l.lose(lossOf(refusal))
		}
	}
}
