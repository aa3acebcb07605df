package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/metric"
	"golang.org/x/sync/errgroup"

	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/pkg/telemetry"
)

const (
	// A claim takes milliseconds, and a second one is refused: what waits is the work
	// of an executor that died in between.
	defaultAckWait  = 5 * time.Second
	defaultInactive = 5 * time.Minute
	defaultListing  = time.Second

	// maxFetches bounds the tenants that are asked at the same time.
	maxFetches = 16
)

// ConsumerConfig has the settings of a Consumer.
type ConsumerConfig struct {
	Agent string
	// Weight is a tenant's share of the executor, relative to the others'; nil
	// stands for 1 for each. It is asked once for each time that a tenant gets work.
	Weight func(tenant string) int
	// AckWait is how long a delivery may wait for its Ack before it comes again; it
	// covers the claim, not the work. 0 stands for 5 s.
	AckWait time.Duration
	// InactiveThreshold is after how long without work a tenant's durable consumer
	// is removed from the server; 0 stands for 5 min.
	InactiveThreshold time.Duration
	// ListInterval is how often the stream is looked through for work whose wake-up
	// was lost, or that is due again; 0 stands for 1 s.
	ListInterval time.Duration
	Logger       *slog.Logger
	Meter        metric.Meter // nil: no metrics
}

// Consumer receives the work of one agent. It is a lifecycle.Service: while it
// runs, it learns which tenants may have work; Next then asks them for it.
type Consumer struct {
	cfg     ConsumerConfig
	nc      *nats.Conn
	ring    *ring
	tenants *tenants
	lister  *lister
	logger  *slog.Logger
	metrics metrics
	loop    *lifecycle.Loop
}

// NewConsumer returns a consumer that isn't running yet.
func NewConsumer(nc *nats.Conn, cfg ConsumerConfig) (*Consumer, error) {
	if !task.ValidName(cfg.Agent) {
		return nil, fmt.Errorf("agent %.*q: %w", task.MaxName, cfg.Agent, ErrBadName)
	}
	cfg = cfg.withDefaults()
	m, err := newMetrics(cfg.Meter)
	if err != nil {
		return nil, err
	}
	logger := cfg.Logger.With(telemetry.LogAgent, cfg.Agent)
	ring := newRing(cfg.Weight)
	tenants, err := newTenants(nc, cfg)
	if err != nil {
		return nil, err
	}
	lister := newLister(nc, cfg, ring, tenants, logger)
	return &Consumer{
		cfg: cfg, nc: nc, ring: ring, tenants: tenants, lister: lister, logger: logger, metrics: m,
		loop: lifecycle.NewLoop(lister.run),
	}, nil
}

func (cfg ConsumerConfig) withDefaults() ConsumerConfig {
	if cfg.AckWait == 0 {
		cfg.AckWait = defaultAckWait
	}
	if cfg.InactiveThreshold == 0 {
		cfg.InactiveThreshold = defaultInactive
	}
	if cfg.ListInterval == 0 {
		cfg.ListInterval = defaultListing
	}
	return cfg
}

// Start begins to listen for work. It succeeds without NATS too, and finds the
// work when NATS comes up.
func (c *Consumer) Start(ctx context.Context) error { return c.loop.Start(ctx) }

// Stop ends the consumer; a waiting Next returns lifecycle.ErrStopped.
func (c *Consumer) Stop(ctx context.Context) error { return c.loop.Stop(ctx) }

// Ready tells whether work can be found and fetched; not so while NATS is away,
// or while a tenant's consumer can't be made.
func (c *Consumer) Ready() error {
	if err := c.loop.Ready(); err != nil {
		return err
	}
	if err := c.lister.ready(); err != nil {
		return err
	}
	return c.tenants.ready()
}

// Done is closed when the consumer has ended; see lifecycle.Ending.
func (c *Consumer) Done() <-chan struct{} { return c.loop.Done() }

// Err tells why the consumer ended by itself.
func (c *Consumer) Err() error { return c.loop.Err() }

// Next blocks until there is work for up to free slots, and returns at least one
// delivery and never more than free. It ends with an error only when ctx ends or
// the consumer stops; trouble with NATS is logged, waited for and shows in
// Ready. One goroutine calls Next at a time.
func (c *Consumer) Next(ctx context.Context, free int) ([]Delivery, error) {
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-c.loop.Done():
			return nil, c.ended()
		default:
		}
		shares := c.ring.take(free)
		if len(shares) > 0 {
			if deliveries := c.ask(ctx, shares); len(deliveries) > 0 {
				return deliveries, nil
			}
			continue
		}
		select {
		case <-c.ring.changed:
		case <-ctx.Done():
		case <-c.loop.Done():
		}
	}
}

func (c *Consumer) ended() error {
	return errors.Join(lifecycle.ErrStopped, c.loop.Err())
}

// ask fetches the shares, several at a time: a tenant that is slow to answer
// costs the others nothing.
func (c *Consumer) ask(ctx context.Context, shares []share) []Delivery {
	if len(shares) == 1 {
		return c.askOne(ctx, shares[0])
	}
	results := make([][]Delivery, len(shares))
	var fetches errgroup.Group
	fetches.SetLimit(maxFetches)
	for i, s := range shares {
		fetches.Go(func() error {
			results[i] = c.askOne(ctx, s)
			return nil
		})
	}
	_ = fetches.Wait()
	var all []Delivery
	for _, deliveries := range results {
		all = append(all, deliveries...)
	}
	return all
}

func (c *Consumer) askOne(ctx context.Context, s share) []Delivery {
	msgs, err := c.tenants.fetch(ctx, s.tenant, s.count)
	c.ring.done(s, len(msgs), lastSequence(msgs))
	if err != nil && ctx.Err() == nil {
		c.logger.WarnContext(ctx, "cannot fetch work", telemetry.LogTenant, s.tenant, telemetry.LogError, err)
	}
	deliveries := make([]Delivery, 0, len(msgs))
	for _, msg := range msgs {
		d, err := decode(msg, c.cfg.Agent, s.tenant)
		if err != nil {
			c.dropPoison(ctx, Delivery{msg: msg}, s.tenant, err)
			continue
		}
		c.metrics.workDelivered(ctx, c.cfg.Agent, d.Redelivered)
		deliveries = append(deliveries, d)
	}
	return deliveries
}

func lastSequence(msgs []jetstream.Msg) uint64 {
	if len(msgs) == 0 {
		return 0
	}
	meta, err := msgs[len(msgs)-1].Metadata()
	if err != nil {
		return 0
	}
	return meta.Sequence.Stream
}

// dropPoison removes a message that no executor will ever understand or be done
// with; left in place, it would come back for ever. If it stood for a task, the
// reaper misses its message and sends a new one.
func (c *Consumer) dropPoison(ctx context.Context, d Delivery, tenant string, reason error) {
	c.metrics.workPoison(ctx, c.cfg.Agent, reason)
	err := d.Term(reason.Error())
	c.logger.ErrorContext(ctx, "removed a work message that nobody can work on",
		telemetry.LogTenant, tenant, telemetry.LogError, errors.Join(reason, err))
}
