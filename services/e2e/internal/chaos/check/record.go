package check

import (
	"strings"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/services/e2e/internal/chaos/journal"
)

// record is all that is known of one task.
type record struct {
	entries

	id    string
	agent string
	// As the store has it; nil if it doesn't.
	task    *a2apb.Task
	version int64
	log     []*eventv1.Event
	// The task after each version, without history.
	states []*a2apb.Task
	// What each message of a user said, and the version at which it was accepted.
	accepted map[string]int64
}

// seen is version v as streams carry it; nil for a version that they pass over.
func (r *record) seen(v int64) *a2apb.StreamResponse { return response(r.log[v-1]) }

// next is the first version above v that streams carry; 0 if there is none.
func (r *record) next(v int64) int64 {
	for v++; v <= int64(len(r.log)); v++ {
		if r.seen(v) != nil {
			return v
		}
	}
	return 0
}

func (r *record) committed(v int64) time.Time { return r.log[v-1].GetTime().AsTime() }

func (r *record) state(v int64) a2apb.TaskState { return r.states[v-1].GetStatus().GetState() }

// clockError is how far the clock of a task store, which is set by that of the
// database while this may be slow to answer, may be from the senders'.
const clockError = time.Second

// ended tells whether the task was over at a time of a sender.
func (r *record) ended(at time.Time) bool {
	last := int64(len(r.log))
	return task.Terminal(r.state(last)) && !r.committed(last).After(at.Add(clockError))
}

// match is the span of versions at which the task was like t; 0, 0 if it never was.
func (r *record) match(t *a2apb.Task) (lowest, highest int64) {
	for i, state := range r.states {
		if alike(state, t) {
			if lowest == 0 {
				lowest = int64(i) + 1
			}
			highest = int64(i) + 1
		}
	}
	return lowest, highest
}

// alike compares without history. What differs most often is compared first.
func alike(a, b *a2apb.Task) bool {
	if a.GetStatus().GetState() != b.GetStatus().GetState() || len(a.GetArtifacts()) != len(b.GetArtifacts()) {
		return false
	}
	for i := range a.GetArtifacts() {
		if len(a.GetArtifacts()[i].GetParts()) != len(b.GetArtifacts()[i].GetParts()) {
			return false
		}
	}
	return proto.Equal(a, b)
}

// response is an event as streams carry it; nil if they don't.
func response(e *eventv1.Event) *a2apb.StreamResponse {
	switch kind := e.GetKind().(type) {
	case *eventv1.Event_Created:
		return &a2apb.StreamResponse{Payload: &a2apb.StreamResponse_Task{Task: kind.Created}}
	case *eventv1.Event_StatusUpdate:
		return &a2apb.StreamResponse{Payload: &a2apb.StreamResponse_StatusUpdate{StatusUpdate: kind.StatusUpdate}}
	case *eventv1.Event_ArtifactUpdate:
		return &a2apb.StreamResponse{Payload: &a2apb.StreamResponse_ArtifactUpdate{ArtifactUpdate: kind.ArtifactUpdate}}
	default:
		return nil
	}
}

// turn is when the last turn was accepted, and what its message says.
func (r *record) turn(b *book) (accepted time.Time, text string) {
	var last int64
	for id, v := range r.accepted {
		if m := b.messages[id]; v > last && m != nil {
			last, text = v, m.Text
		}
	}
	return r.committed(max(last, 1)), text
}

// onPurpose tells whether a message wants the task to fail.
func onPurpose(text string) bool { return text == "fail" }

// during are the interruptions of targets that overlap a span of time.
func (c *checker) during(from, to time.Time, targets ...string) []journal.Interruption {
	var found []journal.Interruption
	for _, i := range c.Interruptions {
		if i.Begun.Before(to) && latest(i.Begun, i.Ended).After(from) && aimed(i.Target, targets) {
			found = append(found, i)
		}
	}
	return found
}

func aimed(target string, targets []string) bool {
	for _, t := range targets {
		if strings.HasPrefix(target, t) {
			return true
		}
	}
	return len(targets) == 0
}

func latest(a time.Time, others ...time.Time) time.Time {
	for _, b := range others {
		if b.After(a) {
			a = b
		}
	}
	return a
}
