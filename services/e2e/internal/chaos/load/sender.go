package load

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/errandhq/errand/services/e2e/internal/binding"
)

const (
	// answerWithin is how long a sender waits before it takes a connection for dead.
	answerWithin = 20 * time.Second
	// Pauses between attempts grow from the first to the slowest; what a server
	// asks for is honored up to longest.
	first   = 50 * time.Millisecond
	slowest = 2 * time.Second
	longest = 5 * time.Second
)

// sender holds one conversation with one agent. It is for one goroutine.
type sender struct {
	*load

	ctx   context.Context
	dice  *rand.Rand
	agent string
}

// fork is a sender that acts beside s.
func (s *sender) fork() *sender {
	beside := *s
	beside.dice = rand.New(rand.NewPCG(s.dice.Uint64(), s.dice.Uint64()))
	return &beside
}

func (s *sender) chance(share float64) bool { return s.dice.Float64() < share }

// upTo is a random duration below limit.
func (s *sender) upTo(limit time.Duration) time.Duration {
	return time.Duration(s.dice.Int64N(int64(limit)))
}

// way is any of the three bindings.
func (s *sender) way() binding.Binding {
	return s.Client.Bindings(s.agent)[s.dice.IntN(3)]
}

// pause waits, unless the time is up before.
func (s *sender) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// again waits before the next try after some failures in a row; asked is the
// delay that the server asks for.
func (s *sender) again(failures int, asked time.Duration) bool {
	own := min(slowest, first<<min(failures, 6))
	own = own/2 + s.upTo(own/2)
	return s.pause(max(own, min(asked, longest)))
}
