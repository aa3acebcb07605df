package watch

import (
	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/proto"

	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"

	"github.com/errandhq/errand/pkg/task"
)

// key names a task. Two tenants that name the same id are never put together.
type key struct{ tenant, taskID string }

// topic is one watched task. The watcher's lock guards it.
type topic struct {
	key

	// Of the watch on the current stream.
	id uint64
	// The version through which the feed has come; before the first answer, the
	// one to start from (-1 for the task's own).
	position int64
	begun    bool
	// Closed while the watch is live, or when the topic has ended.
	live        chan struct{}
	subscribers map[*Subscription]struct{}
}

func newTopic(k key, after int64) *topic {
	return &topic{key: k, position: after, live: make(chan struct{}), subscribers: map[*Subscription]struct{}{}}
}

// add joins a subscriber at the topic's position.
func (t *topic) add(w *Watcher, after int64) *Subscription {
	s := &Subscription{watcher: w, topic: t, limit: w.cfg.Buffer, position: after, wake: make(chan struct{}, 1)}
	if t.begun {
		s.begin(t.position)
	}
	t.subscribers[s] = struct{}{}
	return s
}

func (t *topic) isLive() bool {
	select {
	case <-t.live:
		return true
	default:
		return false
	}
}

// interrupt is for a broken stream: who subscribes now waits for the next one.
func (t *topic) interrupt() {
	if t.isLive() {
		t.live = make(chan struct{})
	}
}

// watching takes the notifier's word that the watch is live.
func (t *topic) watching(position int64) {
	switch {
	case !t.begun:
		t.begun, t.position = true, position
		for s := range t.subscribers {
			s.begin(position)
		}
	case position > t.position:
		t.gap(position)
	}
	if !t.isLive() {
		close(t.live)
	}
}

// deliver takes the next event and reports whether the task is terminal by it.
func (t *topic) deliver(event *eventv1.Event) (terminal bool) {
	version := event.GetVersion()
	switch {
	case version <= t.position:
		return false
	case version > t.position+1:
		t.gap(version)
	default:
		t.position = version
		size := proto.Size(event)
		for s := range t.subscribers {
			s.push(event, size)
		}
	}
	return task.Terminal(state(event))
}

func state(event *eventv1.Event) a2apb.TaskState {
	if created := event.GetCreated(); created != nil {
		return created.GetStatus().GetState()
	}
	return event.GetStatusUpdate().GetStatus().GetState()
}

// gap goes on at a position without the events before it.
func (t *topic) gap(position int64) {
	t.position = position
	t.resync()
}

func (t *topic) resync() {
	for s := range t.subscribers {
		s.resync()
	}
}

func (t *topic) end(err error) {
	for s := range t.subscribers {
		s.end(err)
	}
	if !t.isLive() {
		close(t.live)
	}
}
