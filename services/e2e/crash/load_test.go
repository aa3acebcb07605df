package crash_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/uuid"

	"github.com/errandhq/errand/services/e2e/internal/binding"
)

const (
	senders = 8
	// What one try of one message may take, restarts included.
	patience = time.Minute
)

// texts are what senders ask for, and how many parts the artifact then has.
var texts = []struct {
	text  string
	parts int
}{{"echo", 1}, {"chunks 5", 5}, {"chunks 5 20", 5}, {"sleep 0.2", 0}}

// message is one that a sender was promised.
type message struct {
	in     *a2apb.SendMessageRequest
	taskID string
	parts  int
	// Answers of earlier tries, which must have named the same task.
	told []string
}

// load sends messages until it is stopped. A sender sends each one again until
// it is answered, and then once more, as one does who lost the answer.
type load struct {
	t      *testing.T
	client *binding.Client
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu       sync.Mutex
	messages []message
}

func startLoad(t *testing.T, client *binding.Client, seed uint64) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{t: t, client: client, cancel: cancel}
	for i := range senders {
		dice := rand.New(rand.NewPCG(seed, uint64(i)+1))
		b := client.Bindings("")[i%3]
		l.done.Go(func() { l.send(ctx, b, dice) })
	}
	t.Cleanup(func() { l.stop() })
	return l
}

// stop ends the load and returns what was accepted.
func (l *load) stop() []message {
	l.cancel()
	l.done.Wait()
	return l.messages
}

func (l *load) send(ctx context.Context, b binding.Binding, dice *rand.Rand) {
	for ctx.Err() == nil {
		want := texts[dice.IntN(len(texts))]
		m := message{parts: want.parts, in: &a2apb.SendMessageRequest{
			Message: &a2apb.Message{
				MessageId: uuid.NewString(), Role: a2apb.Role_ROLE_USER,
				Parts: []*a2apb.Part{{Content: &a2apb.Part_Text{Text: want.text}}},
			},
			Configuration: &a2apb.SendMessageConfiguration{ReturnImmediately: dice.IntN(2) == 0},
		}}
		for range 1 + dice.IntN(2) {
			if id := l.accept(b, m.in); id != "" {
				m.told = append(m.told, id)
			}
		}
		if len(m.told) == 0 {
			return
		}
		m.taskID = m.told[0]
		l.mu.Lock()
		l.messages = append(l.messages, m)
		l.mu.Unlock()
	}
}

// accept sends until there is an answer. Its tries go on after the load has
// stopped: what was sent may have been accepted, so its task must be known.
func (l *load) accept(b binding.Binding, in *a2apb.SendMessageRequest) (taskID string) {
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		answer, err := l.try(b, in)
		switch {
		case err == nil && answer.Err == nil:
			return answer.Result.(*a2apb.SendMessageResponse).GetTask().GetId()
		case err == nil && !retryable(answer.Err):
			l.t.Errorf("%s refused: %v", b.Name(), answer.Err)
			return ""
		}
		<-time.After(20 * time.Millisecond) // a client that waits before it tries again
	}
	l.t.Errorf("%s: no answer for %s", b.Name(), patience)
	return ""
}

func (l *load) try(b binding.Binding, in *a2apb.SendMessageRequest) (*binding.Answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return b.Call(ctx, binding.SendMessage, in) //nolint:wrapcheck // only counted
}

// retryable is what a sender is told when it may try again.
func retryable(e *binding.Error) bool {
	return e.Reason() == "UNAVAILABLE" || e.Reason() == "DEADLINE_EXCEEDED" || e.Reason() == "CANCELED"
}
