package hub

import (
	"context"
	"slices"
	"time"
)

// compareLoop finds the events that were lost without a later one to show it,
// by comparing what was sent with the store's versions.
func (h *Hub) compareLoop(ctx context.Context) {
	ticker := time.NewTicker(h.cfg.Compare)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-h.cfg.Feed.Interrupted():
			h.flush(ctx)
		}
		if err := h.compare(ctx); err != nil && ctx.Err() == nil {
			h.cfg.Logger.Warn("can't compare watched tasks with the store", "error", err)
		}
	}
}

func (h *Hub) compare(ctx context.Context) error {
	for keys := range slices.Chunk(h.liveKeys(), maxRefs) {
		versions, err := h.versions(ctx, keys)
		if err != nil {
			return err
		}
		h.mu.Lock()
		for _, k := range keys {
			h.compared(k, versions)
		}
		h.mu.Unlock()
	}
	return nil
}

func (h *Hub) liveKeys() []key {
	h.mu.Lock()
	defer h.mu.Unlock()
	keys := make([]key, 0, len(h.topics))
	for k, t := range h.topics {
		if slices.ContainsFunc(t.watches, func(w *watch) bool { return w.live }) {
			keys = append(keys, k)
		}
	}
	return keys
}

func (h *Hub) compared(k key, versions map[key]int64) {
	t := h.topics[k]
	if t == nil {
		return
	}
	version, ok := versions[k]
	if !ok {
		h.notFound(t)
		return
	}
	for _, w := range t.watches {
		w.seq.Learn(version)
		if w.missing() {
			// The event may just be on its way.
			h.fillAfterHold(t)
		}
	}
}
