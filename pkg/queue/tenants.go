package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/errandhq/errand/pkg/natsconn"
)

const (
	// What an executor has not acknowledged yet is bounded by its free slots; the
	// server's own bound only has to be out of the way, since a tenant that reaches
	// it would look empty.
	maxAckPending = 1 << 20

	fetchRetryMin = 100 * time.Millisecond
	fetchRetryMax = 10 * time.Second
	ensureTimeout = 5 * time.Second
)

// tenants holds the durable consumers of an agent's tenants, made when work is
// first fetched and made anew when the server no longer has them.
type tenants struct {
	nc  *nats.Conn
	js  jetstream.JetStream
	cfg ConsumerConfig

	mu       sync.Mutex
	byTenant map[string]*tenant
}

type tenant struct {
	consumer jetstream.Consumer // nil: to be made
	used     time.Time
	backoff  *backoff.ExponentialBackOff
	retryAt  time.Time // after a failure
}

func newTenants(nc *nats.Conn, cfg ConsumerConfig) (*tenants, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("open JetStream: %w", err)
	}
	return &tenants{nc: nc, js: js, cfg: cfg, byTenant: map[string]*tenant{}}, nil
}

// fetch asks a tenant's consumer for up to count messages, without waiting for
// any to come. It may return messages together with an error. After a failure it
// fetches nothing for a growing while; the listing of the stream brings the
// tenant up again.
func (t *tenants) fetch(ctx context.Context, name string, count int) ([]jetstream.Msg, error) {
	tenant := t.get(name)
	if time.Now().Before(tenant.retryAt) {
		return nil, nil
	}
	msgs, err := t.fetchFrom(ctx, name, tenant, count)
	if isGone(err) && len(msgs) == 0 {
		// The consumer was idle for long, or the server lost it: an ordinary start.
		tenant.consumer = nil
		msgs, err = t.fetchFrom(ctx, name, tenant, count)
	}
	if err != nil {
		tenant.consumer = nil
		tenant.retryAt = time.Now().Add(tenant.backoff.NextBackOff())
		return msgs, natsconn.Reason(err)
	}
	tenant.backoff.Reset()
	return msgs, nil
}

// get returns the tenant; the ring sees to it that nobody else has it.
func (t *tenants) get(name string) *tenant {
	t.mu.Lock()
	defer t.mu.Unlock()
	found, ok := t.byTenant[name]
	if !ok {
		delays := backoff.NewExponentialBackOff()
		delays.InitialInterval = fetchRetryMin
		delays.MaxInterval = fetchRetryMax
		found = &tenant{backoff: delays}
		t.byTenant[name] = found
	}
	found.used = time.Now()
	return found
}

func (t *tenants) fetchFrom(ctx context.Context, name string, tenant *tenant, count int) ([]jetstream.Msg, error) {
	// A fetch that can't be sent would leave its subscription behind in the client.
	if err := natsconn.Ready(t.nc); err != nil {
		return nil, err
	}
	if tenant.consumer == nil {
		consumer, err := t.makeConsumer(ctx, name)
		if err != nil {
			return nil, err
		}
		tenant.consumer = consumer
	}
	batch, err := tenant.consumer.FetchNoWait(count)
	if err != nil {
		return nil, fmt.Errorf("fetch work: %w", err)
	}
	var msgs []jetstream.Msg
	for msg := range batch.Messages() {
		msgs = append(msgs, msg)
	}
	if err := batch.Error(); err != nil {
		return msgs, fmt.Errorf("fetch work: %w", err)
	}
	return msgs, nil
}

func (t *tenants) makeConsumer(ctx context.Context, name string) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, ensureTimeout)
	defer cancel()
	filter, err := workSubject(t.cfg.Agent, name)
	if err != nil {
		return nil, err
	}
	cfg := jetstream.ConsumerConfig{
		Durable:       consumerName(t.cfg.Agent, name),
		FilterSubject: filter,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       t.cfg.AckWait,
		// A message that is delivered too often must not stay behind undelivered;
		// attempts are counted in the task's row, where they end in FAILED.
		MaxDeliver:        -1,
		MaxAckPending:     maxAckPending,
		InactiveThreshold: t.cfg.InactiveThreshold,
	}
	consumer, err := t.js.CreateOrUpdateConsumer(ctx, Stream, cfg)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if err := EnsureStream(ctx, t.nc, t.cfg.Stream); err != nil {
			return nil, err
		}
		consumer, err = t.js.CreateOrUpdateConsumer(ctx, Stream, cfg)
	}
	if err != nil {
		return nil, fmt.Errorf("make consumer %s: %w", cfg.Durable, err)
	}
	return consumer, nil
}

// forgetIdle drops what is known of tenants that had no work for long; the
// server removes their consumers after the same time.
func (t *tenants) forgetIdle(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, tenant := range t.byTenant {
		if now.Sub(tenant.used) > t.cfg.InactiveThreshold {
			delete(t.byTenant, name)
		}
	}
}

func isGone(err error) bool {
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrConsumerDeleted) ||
		errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrConsumerDoesNotExist)
}
