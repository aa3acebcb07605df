package events

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/natsconn"
	"github.com/errandhq/errand/pkg/telemetry"
)

const (
	defaultPurgeDelay = time.Minute
	purgeTimeout      = 10 * time.Second
	// maxPurges bounds what waits to be purged; what is left out ends by age.
	maxPurges = 100_000
)

// PurgerConfig has the settings of a Purger.
type PurgerConfig struct {
	// Delay is how long a terminal task's events stay for readers that are behind;
	// 0 stands for 1 min.
	Delay  time.Duration
	Logger *slog.Logger
	Meter  metric.Meter // nil: no metrics
}

// Purger removes the events of terminal tasks from the stream before their age
// does, one task at a time so that it never competes with publishing. Nothing
// relies on it. It is a lifecycle.Service.
type Purger struct {
	js     jetstream.JetStream
	stream jetstream.Stream // nil until first needed; for the loop alone
	cfg    PurgerConfig
	purged metric.Int64Counter
	loop   *lifecycle.Loop

	mu      sync.Mutex
	waiting []purge // by due time
	added   chan struct{}
}

type purge struct {
	subject string
	due     time.Time
}

// NewPurger returns a purger that isn't running yet.
func NewPurger(nc *nats.Conn, cfg PurgerConfig) (*Purger, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("open JetStream: %w", err)
	}
	if cfg.Delay == 0 {
		cfg.Delay = defaultPurgeDelay
	}
	if cfg.Meter == nil {
		cfg.Meter = noop.Meter{}
	}
	purged, err := cfg.Meter.Int64Counter(telemetry.MetricEventPurged,
		metric.WithDescription("Terminal tasks whose events were removed from NATS."))
	if err != nil {
		return nil, fmt.Errorf("create the purger's metrics: %w", err)
	}
	p := &Purger{js: js, cfg: cfg, purged: purged, added: make(chan struct{}, 1)}
	p.loop = lifecycle.NewLoop(p.run)
	return p, nil
}

// Add has a terminal task's events removed after the delay.
func (p *Purger) Add(tenant, taskID string) {
	subject, err := natsconn.Subject(eventsPrefix, tenant, taskID)
	if err != nil {
		return // such a task has no events on NATS
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) >= maxPurges {
		return
	}
	p.waiting = append(p.waiting, purge{subject: subject, due: time.Now().Add(p.cfg.Delay)})
	select {
	case p.added <- struct{}{}:
	default:
	}
}

func (p *Purger) run(ctx context.Context) error {
	for ctx.Err() == nil {
		subject, wait := p.next(time.Now())
		if subject != "" {
			p.purge(ctx, subject)
			continue
		}
		select {
		case <-time.After(wait):
		case <-p.added:
		case <-ctx.Done():
		}
	}
	return nil
}

// next takes the first subject that is due, or tells how long none will be.
func (p *Purger) next(now time.Time) (subject string, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == 0 {
		return "", time.Hour
	}
	first := p.waiting[0]
	if wait := first.due.Sub(now); wait > 0 {
		return "", wait
	}
	p.waiting = p.waiting[1:]
	return first.subject, 0
}

func (p *Purger) purge(ctx context.Context, subject string) {
	purgeCtx, cancel := context.WithTimeout(ctx, purgeTimeout)
	defer cancel()
	err := p.tryPurge(purgeCtx, subject)
	if err == nil {
		p.purged.Add(ctx, 1)
		return
	}
	if ctx.Err() == nil {
		p.cfg.Logger.DebugContext(ctx, "left a terminal task's events to end by age",
			"subject", subject, telemetry.LogError, natsconn.Reason(err))
	}
}

func (p *Purger) tryPurge(ctx context.Context, subject string) error {
	if p.stream == nil {
		stream, err := p.js.Stream(ctx, Stream)
		if err != nil {
			return fmt.Errorf("look up the event stream: %w", err)
		}
		p.stream = stream
	}
	if err := p.stream.Purge(ctx, jetstream.WithPurgeSubject(subject)); err != nil {
		return fmt.Errorf("purge events: %w", err)
	}
	return nil
}

// Start begins to purge.
func (p *Purger) Start(ctx context.Context) error { return p.loop.Start(ctx) }

// Stop ends the purger; what waits ends by age.
func (p *Purger) Stop(ctx context.Context) error { return p.loop.Stop(ctx) }

// Ready tells whether the purger runs.
func (p *Purger) Ready() error { return p.loop.Ready() }

// Done is closed when the purger has ended; see lifecycle.Ending.
func (p *Purger) Done() <-chan struct{} { return p.loop.Done() }

// Err tells why the purger ended by itself.
func (p *Purger) Err() error { return p.loop.Err() }
