// Package publish tells the rest of the cluster what the task store committed:
// events to readers, work to executors, control messages to holders of leases.
//
// The event log in the database is the outbox. Every event row names its publisher
// (one running task store) and its number there. A Publisher sends what its store
// commits at once and records, about once a second, up to which number everything
// is published: its mark. Nothing is written for a single event.
//
//	number   41 42 43 44 45 46 47
//	          ✓  ✓  ·  ✓  ?  ✗         ✓ published  · on its way  ✗ aborted
//	             ▲                     ? in doubt: asked of the outbox
//	            mark
//
// While NATS is away, or slower than the store, the Publisher keeps no events in
// memory; it falls behind, and drains them from the outbox later. What a Publisher
// didn't live to publish, a Relay does: it looks for marks that no longer move.
//
// Work and control messages are hints without an outbox: the reaper finds tasks
// whose work message is gone, and a heartbeat tells what a control message would
// have.
package publish
