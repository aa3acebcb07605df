package hub

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
)

// pageEvents is how many events one read of the log asks for.
const pageEvents = 256

// errStale says that the log doesn't have what is known to be committed.
var errStale = errors.New("the event log is behind a version that was published")

// fillLoop reads the log for topics that miss something.
func (h *Hub) fillLoop(ctx context.Context) {
	retry := newRetry()
	for {
		t := h.nextFill(ctx)
		if t == nil {
			return
		}
		err := h.readLog(ctx, t)
		if err == nil {
			retry.Reset()
		} else if ctx.Err() == nil {
			h.cfg.Logger.Warn("can't read the event log; trying again", "task_id", t.taskID, "error", err)
			pause(ctx, retry)
		}
		h.filled(t)
	}
}

// nextFill waits for a topic to fill; nil when the context ends.
func (h *Hub) nextFill(ctx context.Context) *topic {
	for ctx.Err() == nil {
		if t := h.popFill(); t != nil {
			return t
		}
		h.fillWake.wait(ctx)
	}
	return nil
}

func (h *Hub) popFill() *topic {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.fills) == 0 {
		h.fills = nil
		return nil
	}
	t := h.fills[0]
	h.fills[0] = nil
	h.fills = h.fills[1:]
	if len(h.fills) > 0 {
		// One signal wakes one loop; this one wakes the next.
		h.fillWake.set()
	}
	return t
}

// filled ends a topic's turn in the fill loops and looks whether it needs another.
func (h *Hub) filled(t *topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t.filling = false
	h.settle(t)
}

// readLog reads one page for all watches of the topic, from the lowest position
// at which one of them misses something.
func (h *Hub) readLog(ctx context.Context, t *topic) error {
	after, ok := h.lowestMissing(t)
	if !ok {
		return nil
	}
	h.metrics.logReads.Add(ctx, 1)
	response, err := h.cfg.Log.ListEvents(ctx, &taskstorev1.ListEventsRequest{
		Scope:  &taskstorev1.Scope{Tenant: t.tenant},
		TaskId: t.taskID,
		After:  after,
		Limit:  pageEvents,
	})
	if err != nil && status.Code(err) != codes.NotFound {
		return fmt.Errorf("list events after %d: %w", after, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.notFound(t)
		return nil
	}
	return t.apply(after, response)
}

func (h *Hub) lowestMissing(t *topic) (after int64, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range t.watches {
		switch {
		case !w.missing():
		case w.stream.full():
			w.starve()
		case !ok || w.seq.Position() < after:
			after, ok = w.seq.Position(), true
		}
	}
	return after, ok
}

func (t *topic) apply(after int64, page *taskstorev1.ListEventsResponse) error {
	events, version := page.GetEvents(), page.GetVersion()
	if version <= after {
		return fmt.Errorf("%w: it ends at %d", errStale, version)
	}
	lost := len(events) == 0 || events[0].GetVersion() != after+1
	for _, w := range t.watches {
		w.seq.Learn(version)
		if lost && w.missing() && w.seq.Position() == after {
			w.gap(version)
			continue
		}
		for _, event := range events {
			w.offer(event)
		}
	}
	return nil
}
