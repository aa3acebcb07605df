package publish

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/errandhq/errand/pkg/events"
	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/errandhq/errand/services/taskstore/internal/role"
)

// relayRole is the role of the one relay of a cluster.
const relayRole = "relay"

const (
	// A publisher that has not beaten for this long has died or is stuck. It beats
	// every few seconds, and clocks differ.
	staleAfter = 10 * time.Second
	// A publisher that may only have been paused finds its row again. Its events
	// are relayed all the same.
	forgetAfter = 10 * time.Minute
	// What one piece of work publishes, in requests to the outbox.
	relayRequests = 40
	relayEvery    = time.Second
)

// RelayOptions is what a Relay needs. All fields are required.
type RelayOptions struct {
	// Names this process.
	Holder string
	Outbox engine.Outbox
	Roles  role.Keeper
	Events *events.Publisher
	Now    func() time.Time
	Logger *slog.Logger
}

// Relay publishes what publishers did not live to publish. Any number may run; one
// at a time works. It is a lifecycle.Service.
type Relay struct {
	*lifecycle.Loop
	RelayOptions
}

// NewRelay returns a relay that isn't running yet.
func NewRelay(o RelayOptions) *Relay {
	r := &Relay{RelayOptions: o}
	r.Loop = role.NewLoop(role.Options{
		Role: relayRole, Holder: o.Holder, Keeper: o.Roles, Now: o.Now, Logger: o.Logger,
	}, r.work)
	return r
}

func (r *Relay) work(ctx context.Context) time.Duration {
	more, err := r.relay(ctx)
	if err != nil && ctx.Err() == nil {
		r.Logger.WarnContext(ctx, "could not relay events; they wait in the outbox", "error", err)
	}
	if more {
		return 0
	}
	return relayEvery
}

// relay publishes what stale publishers left, up to a bound.
func (r *Relay) relay(ctx context.Context) (more bool, err error) {
	now := r.Now()
	stale, err := r.Outbox.StalePublishers(ctx, now.Add(-staleAfter))
	if err != nil {
		return false, fmt.Errorf("look for stale publishers: %w", err)
	}
	requests := relayRequests
	for _, p := range stale {
		for through := p.Through; ; requests-- {
			if requests == 0 {
				return true, nil
			}
			next, err := r.publishNext(ctx, p.ID, through)
			if err != nil {
				return false, err
			}
			if next == through {
				break
			}
			through = next
		}
		if p.BeatAt.Before(now.Add(-forgetAfter)) {
			if err := r.Outbox.DropPublisher(ctx, p.ID); err != nil {
				return false, fmt.Errorf("forget publisher: %w", err)
			}
		}
	}
	return false, nil
}

// publishNext publishes the next events of a publisher and moves its mark.
func (r *Relay) publishNext(ctx context.Context, publisher string, through int64) (int64, error) {
	rows, err := r.Outbox.ReadOutbox(ctx, publisher, through, drainEvents)
	if err != nil {
		return 0, fmt.Errorf("read outbox: %w", err)
	}
	if len(rows) == 0 {
		return through, nil
	}
	batch, err := decode(rows)
	if err != nil {
		return 0, err
	}
	if err := r.Events.PublishTraced(ctx, batch); err != nil {
		return 0, err
	}
	through = rows[len(rows)-1].Seq
	if err := r.Outbox.AdvancePublisher(ctx, publisher, through); err != nil {
		return 0, fmt.Errorf("record mark %d: %w", through, err)
	}
	r.Logger.InfoContext(ctx, "relayed events", "publisher", publisher, "events", len(rows), "through", through)
	return through, nil
}
