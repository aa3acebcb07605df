package load

import (
	"fmt"
	"sync"
	"time"

	"github.com/errandhq/errand/pkg/task"
)

// kinds are the conversations and how often each is held.
var kinds = []struct {
	share float64
	hold  func(*sender)
}{
	{0.35, (*sender).submit},
	{0.22, (*sender).stream},
	{0.08, (*sender).watch},
	{0.03, (*sender).burst},
	{0.13, (*sender).answer},
	{0.08, (*sender).direct},
	{0.08, (*sender).abandon},
	{0.02, (*sender).fail},
}

func (s *sender) converse() {
	at := s.dice.Float64()
	for _, k := range kinds {
		if at -= k.share; at < 0 {
			k.hold(s)
			return
		}
	}
	s.submit()
}

// steps is a command that takes up to about a second, and sometimes longer than
// a lease may have to be waited for.
func (s *sender) steps() string {
	apart := s.dice.IntN(100)
	if s.chance(0.05) {
		apart = 500
	}
	return fmt.Sprintf("steps %d %d", 1+s.dice.IntN(12), apart)
}

// submit lets the task be, or polls until it has ended.
func (s *sender) submit() {
	told := s.send(s.steps(), "", s.chance(0.5))
	if told.Task != nil && s.chance(0.3) {
		s.poll(told.Task.GetId(), settled)
	}
}

// stream follows the task from the message on.
func (s *sender) stream() {
	text := s.steps()
	m := s.compose(text, "", false)
	defer s.close(m)
	s.subscriber(m, "").follow()
}

// watch lets others follow the task than the one who sent the message.
func (s *sender) watch() {
	told := s.send(s.steps(), "", true)
	if told.Task == nil {
		return
	}
	s.beside(told.Task.GetId())()
	if s.chance(0.5) {
		s.read(told.Task.GetId())
	}
}

// burst follows a task that writes more at once than a gateway keeps for a
// subscriber who lags.
func (s *sender) burst() {
	m := s.compose("steps 60 0", "", false)
	defer s.close(m)
	s.subscriber(m, "").follow()
}

// beside follows a task by up to two others; the function that it returns waits
// for them.
func (s *sender) beside(taskID string) (wait func()) {
	var others sync.WaitGroup
	for range 1 + s.dice.IntN(2) {
		other := s.fork()
		others.Go(func() { other.subscriber(nil, taskID).follow() })
	}
	return others.Wait
}

// answer answers the question of a task.
func (s *sender) answer() {
	text := "ask"
	if s.chance(0.5) {
		text += " " + s.steps()
	}
	told := s.send(text, "", s.chance(0.5))
	if told.Task == nil {
		return
	}
	id := told.Task.GetId()
	if s.chance(0.3) {
		defer s.beside(id)()
	}
	if s.poll(id, settled) != task.InputRequired {
		return
	}
	reply := fmt.Sprintf("blue %d", s.dice.Uint32())
	if s.chance(0.3) {
		m := s.compose(reply, id, false)
		defer s.close(m)
		s.subscriber(m, "").follow()
		return
	}
	s.send(reply, id, s.chance(0.5))
}

// direct wants an answer without a task.
func (s *sender) direct() {
	if s.Hybrid != "" {
		s.agent = s.Hybrid
		s.send("msg", "", s.chance(0.5))
	}
}

// abandon cancels a task that is queued, running or parked.
func (s *sender) abandon() {
	text, awaited := "long 30", begun
	switch s.dice.IntN(3) {
	case 0:
		text, awaited = s.steps(), nil
	case 1:
		text, awaited = "ask", settled
	}
	told := s.send(text, "", true)
	if told.Task == nil {
		return
	}
	id := told.Task.GetId()
	if s.chance(0.3) {
		defer s.beside(id)()
	}
	if awaited != nil {
		s.poll(id, awaited)
		s.pause(s.upTo(time.Second))
	}
	s.cancel(id)
	s.read(id)
}

// fail has a task fail on purpose.
func (s *sender) fail() { s.send("fail", "", s.chance(0.5)) }
