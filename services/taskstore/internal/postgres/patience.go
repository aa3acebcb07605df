package postgres

import (
	"context"
	"strconv"
	"time"
)

// patience is how long one answer of the server may take. What a transaction may
// wait for on the server is a share of it, so that the server gives up first: then
// the outcome is known. The server is told with each transaction, in the same
// round trip.
type patience time.Duration

func (p patience) share(numerator, denominator time.Duration) string {
	return milliseconds(time.Duration(p) * numerator / denominator)
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// forAnswer bounds one request.
func (p patience) forAnswer(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, time.Duration(p))
}

// limits are the settings of a transaction of one round trip.
func (p patience) limits() args {
	return args{"statement_timeout": p.share(4, 5), "lock_timeout": p.share(1, 3)}
}

// guards are the settings of an update. Without its caller it could stay open, or
// wait, for ever. One that several changes share does not wait long for a locked
// row: each is then tried alone, and those of other rows succeed.
func (p patience) guards(changes int) args {
	wait := p.share(2, 3)
	if changes > 1 {
		wait = p.share(1, 15)
	}
	return args{"statement_timeout": p.share(4, 5), "lock_timeout": wait, "idle_timeout": milliseconds(idleTimeout)}
}
