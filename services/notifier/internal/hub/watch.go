package hub

import (
	"context"

	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	notifierv1 "github.com/errandhq/errand/proto/gen/errand/notifier/v1"
	"github.com/errandhq/errand/services/notifier/internal/sequence"
)

// watch is one task on one stream. There may be very many idle ones: it owns no
// goroutine, channel or buffer.
type watch struct {
	id     uint64
	stream *Stream
	topic  *topic
	// The asked position; it holds once the watch is live.
	after int64
	seq   sequence.Sequence
	// To be sent before the next event.
	notices []*notifierv1.WatchResponse
	live    bool
	// In the stream's queue of watches that have something to send.
	queued bool
	// In the stream's list of watches that wait for room.
	starved bool
	gone    bool
}

// change runs a change of the sequence and keeps the stream's account of what
// is buffered.
func (w *watch) change(f func()) {
	before := w.seq.Size()
	f()
	w.stream.account(w.seq.Size() - before)
}

// missing reports whether the log has to be read for this watch: not while its
// position isn't known yet, nor while its stream has no room for what comes.
func (w *watch) missing() bool { return w.live && !w.starved && w.seq.Missing() }

// offer takes an event in; without room only its version is noted.
func (w *watch) offer(event *eventv1.Event) {
	if w.stream.full() {
		w.seq.Learn(event.GetVersion())
		return
	}
	w.change(func() { w.seq.Offer(event) })
	if w.live && w.seq.Ready() {
		w.stream.enqueue(w)
	}
}

// join makes the watch live; version is the store's after the subscription.
func (w *watch) join(version int64) {
	position := w.after
	if position < 0 || position > version {
		position = version
	}
	w.live = true
	w.seq.Learn(version)
	w.change(func() { w.seq.Skip(position) })
	w.notify(&notifierv1.WatchResponse{Kind: &notifierv1.WatchResponse_Watching{
		Watching: &notifierv1.Watching{Position: position},
	}})
}

// gap goes on at a version since the log no longer holds the ones before it.
func (w *watch) gap(version int64) {
	w.change(func() { w.seq.Skip(version) })
	w.stream.hub.metrics.gaps.Add(context.Background(), 1)
	w.notify(&notifierv1.WatchResponse{Kind: &notifierv1.WatchResponse_Gap{
		Gap: &notifierv1.Gap{Position: version},
	}})
}

func (w *watch) notFound() {
	w.stream.hub.remove(w)
	w.notify(&notifierv1.WatchResponse{Kind: &notifierv1.WatchResponse_NotFound{
		NotFound: &notifierv1.NotFound{},
	}})
}

func (w *watch) notify(notice *notifierv1.WatchResponse) {
	notice.WatchId = w.id
	w.notices = append(w.notices, notice)
	w.stream.enqueue(w)
}

// starve lets a watch wait until its stream has room. It gives back what it
// holds behind a hole, which could otherwise keep the room away for ever.
func (w *watch) starve() {
	if !w.starved {
		w.starved = true
		w.stream.starved = append(w.stream.starved, w)
	}
	w.change(w.seq.Forget)
}
