package check

import (
	"math"
	"time"

	"github.com/errandhq/errand/services/e2e/internal/chaos/journal"
)

// sends are counted over all messages.
type sends struct {
	accepted, attempts, again, lost, refused, retries, replies int
	// Of answers that did not wait for the turn: all, and those of times in which
	// nothing was done to the cluster.
	latencies, undisturbed []time.Duration
	first, last            time.Time
}

func (c *checker) countMessages() {
	var s sends
	for _, m := range c.book.messages {
		c.countSends(&s, m)
	}
	c.row("messages sent", len(c.book.messages))
	c.row("messages accepted", s.accepted)
	if span := s.last.Sub(s.first); span > 0 {
		const usual = 20 * time.Minute
		c.row("accepted per 20 minutes", math.Round(float64(s.accepted)*float64(usual)/float64(span)))
	}
	c.row("sends", s.attempts)
	c.row("  retries", s.retries)
	c.row("  answered again", s.again)
	c.row("  lost answers", s.lost)
	c.row("  told to try again", s.refused)
	c.row("direct answers", s.replies)
	c.row("acceptance", spread(s.latencies))
	c.row("  undisturbed", spread(s.undisturbed))
}

func (c *checker) countSends(s *sends, m *journal.Message) {
	answers, failed := 0, false
	for _, a := range m.Attempts {
		if s.first.IsZero() || a.Begun.Before(s.first) {
			s.first = a.Begun
		}
		s.last = latest(s.last, a.Begun)
		s.attempts++
		if failed {
			s.retries++
		}
		failed = a.Lost || a.Retryable
		switch {
		case a.Lost:
			s.lost++
		case a.Retryable:
			s.refused++
		case a.Task != nil || a.Reply != nil:
			answers++
			c.countLatency(s, a)
		}
		if a.Reply != nil {
			s.replies++
		}
	}
	s.accepted += min(answers, 1)
	s.again += max(answers-1, 0)
}

func (c *checker) countLatency(s *sends, a journal.Attempt) {
	if a.Blocking {
		return
	}
	d := a.Ended.Sub(a.Begun)
	s.latencies = append(s.latencies, d)
	if len(c.during(a.Begun.Add(-recovery), a.Ended)) == 0 {
		s.undisturbed = append(s.undisturbed, d)
	}
}
