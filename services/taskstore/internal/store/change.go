package store

import (
	"context"
	"fmt"
	"time"

	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	"github.com/errandhq/errand/services/taskstore/internal/batch"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/proto"
)

// change is one write that shares transactions with others.
type change interface {
	batch.Item
	// selects names the rows that the change needs.
	selects(now time.Time, sel *engine.Selection)
	// decide says what to make of the rows. It may be called again, on rows that
	// were read anew; what it remembers for its caller must then be as new. A
	// change that is refused decides on nothing.
	decide(now time.Time, rows *engine.Loaded) decision
}

// decision is what one change does: rows to write and what to tell afterwards.
// Rows of the event log are made from the notice.
type decision struct {
	changes engine.Changes
	notice  Notice
}

// do runs changes and returns an error for each that the database failed for.
// What a change decided is in the change, if there is no error: a transaction
// whose caller left may still be deciding.
func do[C change](ctx context.Context, s *Store, changes []C) []error {
	items := make([]change, len(changes))
	for i, c := range changes {
		items[i] = traced{change: c, caller: trace.SpanContextFromContext(ctx)}
	}
	return s.writes.Do(ctx, items...)
}

// traced is a change that knows who asked for it.
type traced struct {
	change
	caller trace.SpanContext
}

func (t traced) decide(now time.Time, rows *engine.Loaded) decision {
	d := t.change.decide(now, rows)
	if !d.notice.Trace.IsValid() {
		d.notice.Trace = t.caller
	}
	return d
}

// flush is one transaction.
func (s *Store) flush(ctx context.Context, changes []change) error {
	now := cut(s.Now())
	var sel engine.Selection
	for _, c := range changes {
		c.selects(now, &sel)
	}
	var reservation Reservation
	var notices []Notice
	err := s.engine.Update(ctx, sel, func(rows *engine.Loaded) (*engine.Changes, error) {
		if reservation != nil {
			reservation.Abort() // the attempt before this one changed nothing
			reservation = nil
		}
		var all engine.Changes
		all, notices = decideAll(changes, now, rows)
		events := 0
		for _, n := range notices {
			events += len(n.Events)
		}
		reservation = s.Publisher.Reserve(events)
		return &all, number(&all, notices, reservation)
	})
	settle(ctx, reservation, notices, err)
	return err
}

func decideAll(changes []change, now time.Time, rows *engine.Loaded) (engine.Changes, []Notice) {
	var all engine.Changes
	var notices []Notice
	touched := map[engine.ContextKey]bool{}
	for _, c := range changes {
		d := c.decide(now, rows)
		merge(&all, d.changes, touched)
		if n := d.notice; len(n.Events)+len(n.Work)+len(n.Controls) > 0 {
			notices = append(notices, n)
		}
	}
	return all, notices
}

// merge adds the rows of one change. Several may touch the same context.
func merge(all *engine.Changes, one engine.Changes, touched map[engine.ContextKey]bool) {
	all.InsertTasks = append(all.InsertTasks, one.InsertTasks...)
	all.UpdateTasks = append(all.UpdateTasks, one.UpdateTasks...)
	all.Messages = append(all.Messages, one.Messages...)
	all.DropArtifacts = append(all.DropArtifacts, one.DropArtifacts...)
	all.Chunks = append(all.Chunks, one.Chunks...)
	all.UpdateDedupe = append(all.UpdateDedupe, one.UpdateDedupe...)
	all.DropDedupe = append(all.DropDedupe, one.DropDedupe...)
	all.PutLeases = append(all.PutLeases, one.PutLeases...)
	all.DropLeases = append(all.DropLeases, one.DropLeases...)
	all.Directs = append(all.Directs, one.Directs...)
	all.PutContexts = append(all.PutContexts, one.PutContexts...)
	all.DeadLetters = append(all.DeadLetters, one.DeadLetters...)
	all.RedriveDeadLetters = append(all.RedriveDeadLetters, one.RedriveDeadLetters...)
	for _, c := range one.TouchContexts {
		if !touched[c.ContextKey] {
			touched[c.ContextKey] = true
			all.TouchContexts = append(all.TouchContexts, c)
		}
	}
}

// number makes the rows of the event log from what is to be told.
func number(all *engine.Changes, notices []Notice, r Reservation) error {
	seq := r.First()
	for _, n := range notices {
		for _, e := range n.Events {
			row, err := eventRow(e)
			if err != nil {
				return err
			}
			row.Publisher, row.Seq = r.Publisher(), seq
			all.Events = append(all.Events, row)
			seq++
		}
	}
	return nil
}

func eventRow(e *eventv1.Event) (engine.Event, error) {
	data, err := proto.Marshal(e)
	if err != nil {
		return engine.Event{}, fmt.Errorf("encode event %d of task %s: %w", e.GetVersion(), e.GetTaskId(), err)
	}
	return engine.Event{
		Tenant: e.GetTenant(), TaskID: e.GetTaskId(), Version: e.GetVersion(), CreatedAt: e.GetTime().AsTime(), Data: data,
	}, nil
}

func settle(ctx context.Context, r Reservation, notices []Notice, err error) {
	switch {
	case r == nil:
		return
	case err == nil:
		r.Commit(ctx, notices)
	case inDoubt(err):
		r.Doubt()
	default:
		r.Abort()
	}
}

// cut makes t what the database gives back.
func cut(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }
