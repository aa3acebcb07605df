package client

import (
	"context"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// attempts counts failures in a row and spaces attempts out.
type attempts struct {
	client   *Client
	failures int
	pauses   *backoff.ExponentialBackOff
}

func (c *Client) newAttempts() *attempts {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval = c.opts.Retry.First
	pauses.MaxInterval = c.opts.Retry.Slowest
	return &attempts{client: c, pauses: pauses}
}

// progress makes the next pause short again.
func (a *attempts) progress() {
	a.failures = 0
	a.pauses.Reset()
}

// again waits before the next attempt. It returns an error when there is to be
// none; err is how the attempt before failed, nil if it only has to be repeated.
func (a *attempts) again(ctx context.Context, err error) error {
	delay := a.pauses.NextBackOff()
	if err == nil {
		a.failures = 0
	} else {
		a.failures++
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case !worthRetry(err), a.failures >= a.client.opts.Retry.Attempts:
			return err
		}
		if e := asError(err); e != nil {
			delay = max(delay, e.RetryAfter)
		}
		a.client.opts.Logger.InfoContext(ctx, "trying again", "after", delay, "error", err)
	}
	return sleep(ctx, delay)
}

func sleep(ctx context.Context, delay time.Duration) error {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// retry repeats an operation that may be done twice.
func (c *Client) retry(ctx context.Context, do func() error) error {
	tries := c.newAttempts()
	for {
		err := do()
		if err == nil {
			return nil
		}
		if err := tries.again(ctx, err); err != nil {
			return err
		}
	}
}
