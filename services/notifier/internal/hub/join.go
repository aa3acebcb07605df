package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// flushTimeout bounds the wait for a feed that is not connected. The watch is
// then live without it: what gets lost is found by the next comparison.
const flushTimeout = time.Second

// joinLoop makes new watches live. Those that come while a round is running
// share the next one.
func (h *Hub) joinLoop(ctx context.Context) {
	retry := newRetry()
	for ctx.Err() == nil {
		joins, drops := h.takeChanges()
		for _, sub := range drops {
			sub.Close()
		}
		switch err := h.join(ctx, joins); {
		case err != nil && ctx.Err() == nil:
			h.cfg.Logger.Warn("watches can't become live; trying again", "watches", len(joins), "error", err)
			h.putBack(joins)
			pause(ctx, retry)
		case len(joins) == 0 && len(drops) == 0:
			h.joinWake.wait(ctx)
		default:
			retry.Reset()
		}
	}
	h.unsubscribeAll()
}

func (h *Hub) takeChanges() (joins []*watch, drops []Subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	// While the store is away watches come and go in any number.
	h.joins = slices.DeleteFunc(h.joins, func(w *watch) bool { return w.gone })
	n := min(len(h.joins), maxRefs)
	joins, h.joins = h.joins[:n:n], h.joins[n:]
	if len(h.joins) == 0 {
		h.joins = nil
	}
	drops, h.drops = h.drops, nil
	return joins, drops
}

func (h *Hub) putBack(joins []*watch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.joins = append(h.joins, joins...)
}

// join makes watches live: subscribe first, then read the versions, so that
// whatever commits later arrives by the subscription.
func (h *Hub) join(ctx context.Context, joins []*watch) error {
	if len(joins) == 0 {
		return nil
	}
	keys := make([]key, 0, len(joins))
	for _, w := range joins {
		switch err := h.subscribe(w.topic); {
		case errors.Is(err, ErrNoTask):
			// Not asked for, so not found.
		case err != nil:
			return err
		default:
			keys = append(keys, w.topic.key)
		}
	}
	h.flush(ctx)
	versions, err := h.versions(ctx, keys)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range joins {
		h.joined(w, versions)
	}
	return nil
}

func (h *Hub) joined(w *watch, versions map[key]int64) {
	version, ok := versions[w.topic.key]
	switch {
	case w.gone:
	case !ok:
		w.notFound()
	default:
		w.join(version)
	}
}

func (h *Hub) subscribe(t *topic) error {
	h.mu.Lock()
	done := t.sub != nil || len(t.watches) == 0
	h.mu.Unlock()
	if done {
		return nil
	}
	sub, err := h.cfg.Feed.Subscribe(t.tenant, t.taskID)
	if err != nil {
		return fmt.Errorf("subscribe to events of task %s: %w", t.taskID, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.sub = sub; len(t.watches) == 0 {
		h.drop(sub)
	}
	return nil
}

func (h *Hub) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	if err := h.cfg.Feed.Flush(ctx); err != nil {
		h.cfg.Logger.Warn("live events are interrupted", "error", err)
	}
}

func (h *Hub) unsubscribeAll() {
	h.mu.Lock()
	subs := h.drops
	for _, t := range h.topics {
		if t.sub != nil {
			subs = append(subs, t.sub)
			t.sub = nil
		}
	}
	h.mu.Unlock()
	for _, sub := range subs {
		sub.Close()
	}
}
