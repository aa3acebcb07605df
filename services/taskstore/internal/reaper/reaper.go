// Package reaper does what no request asks for: it takes lapsed leases away, tells
// executors of tasks that are due or whose work message is gone, gives up tasks
// that nobody ends, and forgets what is older than its retention.
//
// One reaper of a cluster works at a time, a bounded piece at a time, the oldest
// first. It finds tasks; what becomes of them is decided by the store, which looks
// again under the row's lock. So a reaper that is late, or two at once, do no harm.
package reaper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/telemetry"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/errandhq/errand/services/taskstore/internal/role"
	"github.com/errandhq/errand/services/taskstore/internal/store"
	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

const (
	roleName = "reaper"
	// How often tasks are looked for, and how often old rows.
	taskEvery  = time.Second
	purgeEvery = time.Minute
	// What one look takes at most. A full one is followed by the next at once.
	taskLimit  = 256
	purgeLimit = 2000
)

// Options is what a Reaper needs. All fields but Meter are required.
type Options struct {
	// Names this process.
	Holder string
	Engine engine.Engine
	Store  *store.Store
	Agents *config.Agents
	NATS   *nats.Conn
	// The database's time, and when it last jumped; see package clock.
	Now    func() time.Time
	Jumped func() time.Time
	Logger *slog.Logger
	Meter  metric.Meter
}

// Reaper is a lifecycle.Service; any number may run.
type Reaper struct {
	*lifecycle.Loop
	Options
	duties   []*duty
	reaped   metric.Int64Counter
	unserved metric.Int64Gauge
	orphans  metric.Int64Counter
	// Where the last look for lost work ended.
	lastQueue engine.Queue
}

// duty is one kind of work.
type duty struct {
	name  string
	every time.Duration
	// do does a bounded piece; full says that there may be more.
	do  func(ctx context.Context) (full bool, err error)
	due time.Time
}

// New returns a reaper that isn't running yet.
func New(o Options) (*Reaper, error) {
	if o.Meter == nil {
		o.Meter = noop.Meter{}
	}
	reaped, err := o.Meter.Int64Counter(telemetry.MetricReaped,
		metric.WithDescription("Tasks that background work changed, by why and what became of them."))
	unserved, err2 := o.Meter.Int64Gauge(telemetry.MetricQueuesUnserved,
		metric.WithDescription("Queues with tasks of an agent that is not in the agents file, which no executor runs."))
	orphans, err3 := o.Meter.Int64Counter(telemetry.MetricWorkPoison,
		metric.WithDescription("Work messages removed because nobody can work on them, by reason."))
	if err := errors.Join(err, err2, err3); err != nil {
		return nil, fmt.Errorf("create the reaper's metrics: %w", err)
	}
	r := &Reaper{Options: o, reaped: reaped, unserved: unserved, orphans: orphans}
	r.duties = []*duty{
		{name: "lapsed", every: taskEvery, do: r.expireLeases},
		{name: "due", every: taskEvery, do: r.enqueueDue},
		{name: "lost", every: taskEvery, do: r.enqueueLost},
		{name: "overrun", every: taskEvery, do: r.expireTurns},
		{name: "parked", every: taskEvery, do: r.expireParked},
		{name: "unserved queues", every: purgeEvery, do: r.reportUnserved},
		{name: "purge dedupe records", every: purgeEvery, do: r.purgeDedupe},
		{name: "purge direct messages", every: purgeEvery, do: r.purgeDirects},
		{name: "purge contexts", every: purgeEvery, do: r.purgeContexts},
		{name: "purge dead letters", every: purgeEvery, do: r.purgeDeadLetters},
		{name: "purge events", every: purgeEvery, do: r.purgeEvents},
	}
	r.Loop = role.NewLoop(role.Options{
		Role: roleName, Holder: o.Holder, Keeper: o.Engine, Now: o.Now, Logger: o.Logger,
	}, r.work)
	return r, nil
}

// work does each duty that is due, once, and tells when the next one will be.
func (r *Reaper) work(ctx context.Context) time.Duration {
	next := taskEvery
	for _, d := range r.duties {
		if wait := time.Until(d.due); wait > 0 {
			next = min(next, wait)
			continue
		}
		if ctx.Err() != nil {
			return 0
		}
		full, err := d.do(ctx)
		if err != nil && ctx.Err() == nil {
			r.Logger.WarnContext(ctx, "background work failed; it is tried again", "work", d.name, "error", err)
		}
		if full && err == nil {
			next = 0
			continue
		}
		d.due = time.Now().Add(d.every)
	}
	return next
}
