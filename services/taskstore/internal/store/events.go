package store

import (
	"context"
	"errors"

	"github.com/errandhq/errand/pkg/a2aerr"
	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

const (
	maxEvents = 1000
	// How many events are read at once: they may be large.
	eventsAtOnce = 16
)

// ListEvents reads the event log of a task above a version. An answer may end
// before the newest version; the reader then asks again from there.
func (s *Store) ListEvents(ctx context.Context, r *taskstorev1.ListEventsRequest) (*taskstorev1.ListEventsResponse, error) {
	answer, err := s.listEvents(ctx, r)
	return answer, wrap("list events", err)
}

func (s *Store) listEvents(ctx context.Context, r *taskstorev1.ListEventsRequest) (*taskstorev1.ListEventsResponse, error) {
	scope, err := s.scope(r.GetScope())
	if err != nil {
		return nil, err
	}
	limit := int(r.GetLimit())
	if limit <= 0 || limit > maxEvents {
		limit = maxEvents
	}
	answer := &taskstorev1.ListEventsResponse{}
	log := eventLog{answer: answer, after: r.GetAfter(), limit: limit, bytes: s.Agents.Limits.Event}
	for !log.full() {
		rows, head, err := s.engine.ReadEvents(ctx, scope, r.GetTaskId(), log.after, min(eventsAtOnce, limit))
		if errors.Is(err, engine.ErrNotFound) {
			return nil, a2aerr.TaskNotFound(r.GetTaskId())
		}
		if err != nil {
			return nil, err
		}
		answer.Version = head.Version
		if err := log.add(rows); err != nil {
			return nil, err
		}
		if len(rows) < min(eventsAtOnce, limit) {
			break
		}
	}
	return answer, nil
}

// eventLog collects events without a gap until its bounds are reached.
type eventLog struct {
	answer *taskstorev1.ListEventsResponse
	// The version of the last event.
	after int64
	limit int
	// What is left of the answer's size; the first event always fits.
	bytes int
	gap   bool
}

func (l *eventLog) full() bool {
	return l.gap || len(l.answer.GetEvents()) >= l.limit || l.bytes <= 0
}

func (l *eventLog) add(rows []engine.Event) error {
	for _, row := range rows {
		l.gap = row.Version != l.after+1
		if l.full() || len(l.answer.GetEvents()) > 0 && len(row.Data) > l.bytes {
			l.bytes = 0
			return nil
		}
		e := &eventv1.Event{}
		if err := decode(row.Data, e); err != nil {
			return err
		}
		l.answer.Events = append(l.answer.Events, e)
		l.after, l.bytes = row.Version, l.bytes-len(row.Data)
	}
	return nil
}
