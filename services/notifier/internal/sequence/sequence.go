// Package sequence puts the events of one task in order: every version once,
// none left out. It is a state machine without a clock, locks or I/O; whoever
// holds one decides when a hole has lasted long enough to read the event log.
//
//	    handed out        missing        held
//	├────────────────┼──────────────┼─────────────┤
//	1          position          known, at least
package sequence

import (
	"slices"

	"google.golang.org/protobuf/proto"

	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
)

// Sequence is the order of one task's events as one reader sees it. The zero
// value starts before version 1. It isn't safe for concurrent use.
type Sequence struct {
	position int64
	known    int64
	// Above position, ascending, each version once.
	held []held
	size int
}

type held struct {
	event *eventv1.Event
	size  int
}

// Position returns the version through which events were handed out.
func (s *Sequence) Position() int64 { return s.position }

// Size returns the encoded size of the events that are held, in bytes.
func (s *Sequence) Size() int { return s.size }

// Offer takes an event in, in whatever order it comes. One that was handed out
// or is held already changes nothing; of one without its kind only the version
// is learned.
func (s *Sequence) Offer(event *eventv1.Event) {
	version := event.GetVersion()
	s.Learn(version)
	if version <= s.position || event.GetKind() == nil {
		return
	}
	i, found := slices.BinarySearchFunc(s.held, version, compareVersion)
	if found {
		return
	}
	size := proto.Size(event)
	s.held = slices.Insert(s.held, i, held{event, size})
	s.size += size
}

// Learn notes that a version exists.
func (s *Sequence) Learn(version int64) { s.known = max(s.known, version) }

// Ready reports whether Next has an event.
func (s *Sequence) Ready() bool {
	return len(s.held) > 0 && s.held[0].event.GetVersion() == s.position+1
}

// Missing reports whether the next version exists but isn't held: unless it
// still arrives, it has to be read from the event log.
func (s *Sequence) Missing() bool { return s.known > s.position && !s.Ready() }

// Next hands out the next version, or nil while it isn't there.
func (s *Sequence) Next() *eventv1.Event {
	if !s.Ready() {
		return nil
	}
	event := s.held[0].event
	s.drop(1)
	s.position++
	return event
}

// Skip moves the position forward to version without handing out what lies
// between; a lower version changes nothing.
func (s *Sequence) Skip(version int64) {
	s.position = max(s.position, version)
	s.Learn(s.position)
	i, _ := slices.BinarySearchFunc(s.held, s.position+1, compareVersion)
	s.drop(i)
}

// Forget drops the events that are held but remembers that they exist, so that
// they are missing from now on.
func (s *Sequence) Forget() { s.drop(len(s.held)) }

func (s *Sequence) drop(n int) {
	for _, h := range s.held[:n] {
		s.size -= h.size
	}
	clear(s.held[:n])
	s.held = s.held[n:]
	if len(s.held) == 0 {
		// An idle sequence keeps no buffer.
		s.held = nil
	}
}

func compareVersion(h held, version int64) int {
	return int(h.event.GetVersion() - version)
}
