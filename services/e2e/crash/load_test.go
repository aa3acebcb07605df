package crash_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/errandhq/errand/services/e2e/internal/binding"
)

const (
	senders = 9
	// What a sender tries for before it gives up, restarts included.
	patience = time.Minute
	pause    = 20 * time.Millisecond
)

// promise is what a sender was told, and what must be true at the end.
type promise struct {
	agent string
	// Empty for a direct Message.
	taskID string
	// The ids in all answers to the same message: tasks or Messages.
	told []string
	// How many messages the sender has sent, and how many parts the artifact has.
	messages, parts int
	// What a stream of the task told, over all its connections.
	events []binding.Event
}

// actions are what senders do. One that got no answer has failed the test and
// makes no promise.
var actions = []func(s *sender) (*promise, bool){
	func(s *sender) (*promise, bool) { return s.submit("echo", 1) },
	func(s *sender) (*promise, bool) { return s.submit("chunks 5", 5) },
	func(s *sender) (*promise, bool) { return s.submit("chunks 5 20", 5) },
	func(s *sender) (*promise, bool) { return s.submit("sleep 0.2", 0) },
	func(s *sender) (*promise, bool) { return s.stream("chunks 5", 5) },
	func(s *sender) (*promise, bool) { return s.stream("chunks 10 50", 10) },
	(*sender).converse,
	(*sender).converse,
	(*sender).direct,
}

// load sends messages until it is stopped.
type load struct {
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu       sync.Mutex
	promises []promise
}

func startLoad(t *testing.T, f *fleet, seed uint64) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{cancel: cancel}
	for i := range senders {
		dice := rand.New(rand.NewPCG(seed, uint64(i)+1))
		s := &sender{t: t, dice: dice, agent: []string{inNode, counted}[i%2], nodes: f.nodes, node: i, binding: i % 3}
		l.done.Go(func() { l.run(ctx, s) })
	}
	t.Cleanup(func() { l.stop() })
	return l
}

// stop ends the load and returns what was promised. What was begun is finished:
// its task may exist, so it must be known.
func (l *load) stop() []promise {
	l.cancel()
	l.done.Wait()
	return l.promises
}

func (l *load) run(ctx context.Context, s *sender) {
	for ctx.Err() == nil {
		p, ok := actions[s.dice.IntN(len(actions))](s)
		if !ok {
			return
		}
		l.mu.Lock()
		l.promises = append(l.promises, *p)
		l.mu.Unlock()
	}
}
