package store

import (
	"context"

	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	executorv1 "github.com/errandhq/errand/proto/gen/errand/executor/v1"
	"go.opentelemetry.io/otel/trace"
)

// Publisher tells others what was committed. Its numbers make the event rows an
// outbox: what an instance commits and does not live to publish is found by
// (publisher, number).
type Publisher interface {
	// Reserve takes n consecutive numbers for the events of a transaction that is
	// about to commit; n may be 0. Each reservation is settled by exactly one call
	// of Commit, Abort or Doubt. Reserve doesn't block.
	Reserve(n int) Reservation
}

// Reservation is one transaction as the publisher sees it.
type Reservation interface {
	// Publisher is the name that stands in the event rows.
	Publisher() string
	// First is the number of the first event; the others follow it.
	First() int64
	// Commit hands over what was committed: the events of all notices, in order,
	// carry the reserved numbers. It doesn't wait for the network, and what it
	// takes is not changed afterwards.
	Commit(ctx context.Context, notices []Notice)
	// Abort says that nothing was committed.
	Abort()
	// Doubt says that nobody knows whether the transaction committed: the
	// publisher finds out from the outbox before it passes these numbers.
	Doubt()
}

// Notice is what one change has to tell. It is a hint that the store changed:
// losing it delays a task and loses none.
type Notice struct {
	// Of the request that made the change; may be invalid.
	Trace    trace.SpanContext
	Events   []*eventv1.Event
	Work     []*executorv1.WorkItem
	Controls []Control
}

// Control is a message to the executor that holds a lease.
type Control struct {
	Holder  string
	Message *executorv1.Control
}
