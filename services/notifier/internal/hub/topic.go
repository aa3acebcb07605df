package hub

import (
	"slices"
	"time"

	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
)

// key names a task. The tenant is part of it: a watch under another tenant than
// the task's must find nothing.
type key struct{ tenant, taskID string }

// topic is one watched task.
type topic struct {
	key

	// Set by the join loop.
	sub     Subscription
	watches []*watch
	// Waiting out the hold of a hole.
	holding bool
	// In the queue of the fill loops, or being read by one.
	filling bool
}

// Deliver takes a live event. The events of one task come from one goroutine.
func (h *Hub) Deliver(event *eventv1.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[key{event.GetTenant(), event.GetTaskId()}]
	if t == nil {
		return
	}
	for _, w := range t.watches {
		w.offer(event)
	}
	h.settle(t)
}

// settle sees to it that what is missing of a topic gets read from the log: at
// once, but for a hole that a late event may still close.
func (h *Hub) settle(t *topic) {
	for _, w := range t.watches {
		if !w.missing() {
			continue
		}
		if w.seq.Size() == 0 {
			h.fill(t)
			return
		}
		h.fillAfterHold(t)
	}
}

// fillAfterHold reads the log if something is still missing after the hold.
func (h *Hub) fillAfterHold(t *topic) {
	if t.holding || t.filling {
		return
	}
	t.holding = true
	time.AfterFunc(hold, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		t.holding = false
		if slices.ContainsFunc(t.watches, (*watch).missing) {
			h.fill(t)
		}
	})
}

// fill queues a topic for the fill loops.
func (h *Hub) fill(t *topic) {
	if t.filling {
		return
	}
	t.filling = true
	h.fills = append(h.fills, t)
	h.fillWake.set()
}

// add puts a watch under its topic and asks the join loop to make it live.
func (h *Hub) add(w *watch, k key) {
	t := h.topics[k]
	if t == nil {
		t = &topic{key: k}
		h.topics[k] = t
	}
	w.topic = t
	t.watches = append(t.watches, w)
	h.joins = append(h.joins, w)
	h.joinWake.set()
}

// remove ends a watch, and with the last one of a topic the subscription.
func (h *Hub) remove(w *watch) {
	w.gone = true
	w.notices = nil
	w.change(w.seq.Forget)
	delete(w.stream.watches, w.id)
	t := w.topic
	t.watches = slices.DeleteFunc(t.watches, func(other *watch) bool { return other == w })
	if len(t.watches) > 0 {
		return
	}
	delete(h.topics, t.key)
	if t.sub != nil {
		h.drop(t.sub)
	}
}

// drop has the join loop end a subscription.
func (h *Hub) drop(sub Subscription) {
	h.drops = append(h.drops, sub)
	h.joinWake.set()
}

// notFound ends all watches of a task that the store does not hold.
func (h *Hub) notFound(t *topic) {
	for _, w := range slices.Clone(t.watches) {
		w.notFound()
	}
}
