package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/nats-io/nats.go"

	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/pkg/telemetry"
)

const (
	listTimeout  = 5 * time.Second
	listRetryMax = 5 * time.Second
)

// lister finds the tenants that may have work: at once by wake-ups, and within an
// interval by the stream's subjects, for wake-ups that were lost and for
// messages that are due again.
type lister struct {
	nc      *nats.Conn
	cfg     ConsumerConfig
	ring    *ring
	tenants *tenants
	logger  *slog.Logger
	failure atomic.Pointer[error] // of the last listing
}

func newLister(nc *nats.Conn, cfg ConsumerConfig, ring *ring, tenants *tenants, logger *slog.Logger) *lister {
	l := &lister{nc: nc, cfg: cfg, ring: ring, tenants: tenants, logger: logger}
	notYet := errors.New("the work stream has not been read yet")
	l.failure.Store(&notYet)
	return l
}

func (l *lister) run(ctx context.Context) error {
	prefix := wakePrefix + "." + l.cfg.Agent + "."
	// The subscription comes first, so that no work falls between it and the listing.
	wakes, err := l.nc.Subscribe(prefix+"*", func(msg *nats.Msg) {
		if tenant := strings.TrimPrefix(msg.Subject, prefix); task.ValidName(tenant) {
			l.ring.mark(tenant, wakeSequence(msg))
		}
	})
	if err != nil {
		return fmt.Errorf("listen for work: %w", err)
	}
	defer func() { _ = wakes.Unsubscribe() }()

	delays := backoff.NewExponentialBackOff()
	delays.InitialInterval = min(l.cfg.ListInterval, listRetryMax)
	delays.MaxInterval = listRetryMax
	for {
		wait := l.cfg.ListInterval
		if l.list(ctx) {
			delays.Reset()
		} else {
			wait = delays.NextBackOff()
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}

func (l *lister) list(ctx context.Context) bool {
	listCtx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	depths, err := Depths(listCtx, l.nc, l.cfg.Agent)
	if ctx.Err() != nil {
		return false
	}
	l.report(ctx, err)
	if err != nil {
		return false
	}
	for tenant := range depths {
		if task.ValidName(tenant) {
			l.ring.mark(tenant, 0)
		}
	}
	l.tenants.tidy(time.Now(), depths)
	return true
}

// report logs when the stream is lost and when it is back, not each try between.
func (l *lister) report(ctx context.Context, err error) {
	var next *error
	if err != nil {
		next = &err
	}
	before := l.failure.Swap(next)
	switch {
	case err != nil && before == nil:
		l.logger.WarnContext(ctx, "the work stream can't be read; trying on", telemetry.LogError, err)
	case err == nil && before != nil:
		l.logger.DebugContext(ctx, "the work stream can be read")
	}
}

func (l *lister) ready() error {
	if failure := l.failure.Load(); failure != nil {
		return *failure
	}
	return nil
}
