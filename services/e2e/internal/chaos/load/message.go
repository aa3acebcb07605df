package load

import (
	"context"
	"slices"
	"sync"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/uuid"

	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/chaos/journal"
)

// Shares of messages whose first answer is thrown away, that are sent twice at
// the same time, and that are sent once more after the answer.
const (
	lost   = 0.1
	beside = 0.1
	after  = 0.1
)

// message is one that is being sent.
type message struct {
	in *a2apb.SendMessageRequest

	mu    sync.Mutex
	entry *journal.Message
}

// compose makes a message; taskID is empty for one that starts a task.
func (s *sender) compose(text, taskID string, immediately bool) *message {
	m := &a2apb.Message{
		MessageId: uuid.NewString(), TaskId: taskID, Role: a2apb.Role_ROLE_USER,
		Parts: []*a2apb.Part{{Content: &a2apb.Part_Text{Text: text}}},
	}
	return &message{
		in: &a2apb.SendMessageRequest{
			Message:       m,
			Configuration: &a2apb.SendMessageConfiguration{ReturnImmediately: immediately, HistoryLength: new(int32(0))},
		},
		entry: &journal.Message{Agent: s.agent, MessageID: m.GetMessageId(), TaskID: taskID, Text: text},
	}
}

func (m *message) note(a journal.Attempt) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entry.Attempts = append(m.entry.Attempts, a)
}

// close writes the message down.
func (s *sender) close(m *message) {
	slices.SortStableFunc(m.entry.Attempts, func(a, b journal.Attempt) int { return a.Begun.Compare(b.Begun) })
	s.journal.AddMessage(m.entry)
}

// send sends a message until it is answered, and some of them more often than
// that. It returns the last answer: an attempt without Task and Reply if there
// is none.
func (s *sender) send(text, taskID string, immediately bool) journal.Attempt {
	m := s.compose(text, taskID, immediately)
	defer s.close(m)
	if s.chance(lost) {
		s.hangUp(m)
	}
	var others sync.WaitGroup
	defer others.Wait()
	if s.chance(beside) {
		twin := s.fork()
		others.Go(func() { twin.deliver(m) })
	}
	told := s.deliver(m)
	if s.chance(after) {
		told = s.deliver(m)
	}
	return told
}

// deliver tries until there is an answer.
func (s *sender) deliver(m *message) journal.Attempt {
	for failures := 0; ; failures++ {
		a, delay := s.try(s.ctx, m)
		if final(a) || !s.again(failures, delay) {
			return a
		}
	}
}

// hangUp sends and does not stay for the answer.
func (s *sender) hangUp(m *message) {
	ctx, cancel := hangUpAfter(s.ctx, s.upTo(40*time.Millisecond))
	defer cancel()
	s.try(ctx, m)
}

func (s *sender) try(ctx context.Context, m *message) (journal.Attempt, time.Duration) {
	a, delay := s.call(ctx, binding.SendMessage, m.in)
	a.Blocking = !m.in.GetConfiguration().GetReturnImmediately()
	m.note(a)
	return a, delay
}
