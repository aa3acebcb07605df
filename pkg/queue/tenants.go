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

	// The client gives up on a fetch after a second, and says nothing. A server that
	// is there answers at once, also that there is no work.
	fetchSilence = 900 * time.Millisecond
)

var errSilent = errors.New("the consumer does not answer")

// tenants holds the durable consumers of an agent's tenants, made when work is
// first fetched and made anew when the server no longer has them. The stream is
// the publishers' to make: without it there is no work.
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
	failure  error     // of the last fetch; guarded by tenants.mu
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
	t.report(tenant, err)
	if err != nil {
		tenant.consumer = nil
		tenant.retryAt = time.Now().Add(tenant.backoff.NextBackOff())
		return msgs, natsconn.Reason(err)
	}
	tenant.backoff.Reset()
	return msgs, nil
}

func (t *tenants) report(tenant *tenant, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tenant.failure = err
}

// ready fails while a tenant's work can't be fetched. Whoever has no free slot
// doesn't try, and doesn't know.
func (t *tenants) ready() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, tenant := range t.byTenant {
		if tenant.failure != nil && time.Since(tenant.used) < 2*fetchRetryMax {
			return fmt.Errorf("tenant %s: %w", name, natsconn.Reason(tenant.failure))
		}
	}
	return nil
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
	began := time.Now()
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
	if len(msgs) == 0 && time.Since(began) > fetchSilence {
		return nil, errSilent
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
	return natsconn.EnsureConsumer(ctx, t.js, natsconn.ConsumerSpec{
		Stream:   Stream,
		Revision: revision,
		ConsumerConfig: jetstream.ConsumerConfig{
			Durable:       consumerName(t.cfg.Agent, name),
			FilterSubject: filter,
			AckPolicy:     jetstream.AckExplicitPolicy,
			AckWait:       t.cfg.AckWait,
			// A message that is delivered too often must not stay behind undelivered;
			// attempts are counted in the task's row, where they end in FAILED.
			MaxDeliver:        -1,
			MaxAckPending:     maxAckPending,
			InactiveThreshold: t.cfg.InactiveThreshold,
		},
	})
}

// tidy drops what is known of tenants that had no work for long; the server
// removes their consumers after the same time. A failure to fetch work is over
// when there is none.
func (t *tenants) tidy(now time.Time, depths map[string]uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, tenant := range t.byTenant {
		if depths[name] == 0 {
			tenant.failure = nil
		}
		if now.Sub(tenant.used) > t.cfg.InactiveThreshold {
			delete(t.byTenant, name)
		}
	}
}

func isGone(err error) bool {
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrConsumerDeleted) ||
		errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrConsumerDoesNotExist)
}
