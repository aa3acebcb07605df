package crash_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/harness"
)

// sender sends over one binding to one agent. It tries again until it is
// answered, at the next node if there are several.
type sender struct {
	t       *testing.T
	dice    *rand.Rand
	agent   string
	nodes   []*harness.Dev
	node    int
	binding int
}

func (s *sender) way() binding.Binding {
	return s.nodes[s.node%len(s.nodes)].Client.Bindings(s.agent)[s.binding]
}

// giveWay waits as a client does that tries again, and turns to the next node.
func (s *sender) giveWay() {
	s.node++
	<-time.After(pause)
}

func (s *sender) message(text string) *a2apb.SendMessageRequest {
	return &a2apb.SendMessageRequest{
		Message: &a2apb.Message{
			MessageId: uuid.NewString(), Role: a2apb.Role_ROLE_USER,
			Parts: []*a2apb.Part{{Content: &a2apb.Part_Text{Text: text}}},
		},
		Configuration: &a2apb.SendMessageConfiguration{ReturnImmediately: s.dice.IntN(2) == 0},
	}
}

// submit sends a message and lets the task be.
func (s *sender) submit(text string, parts int) (*promise, bool) {
	p := &promise{agent: s.agent, messages: 1, parts: parts}
	return p, s.send(p, s.message(text))
}

// send sends until there is an answer, and sometimes once more, as one does who
// lost the answer.
func (s *sender) send(p *promise, in *a2apb.SendMessageRequest) bool {
	for range 1 + s.dice.IntN(2) {
		response, ok := call[*a2apb.SendMessageResponse](s, binding.SendMessage, in)
		if !ok {
			return false
		}
		p.told = append(p.told, response.GetTask().GetId()+response.GetMessage().GetMessageId())
		p.taskID = response.GetTask().GetId()
	}
	return true
}

// direct wants an answer without a task.
func (s *sender) direct() (*promise, bool) {
	p := &promise{agent: s.agent}
	return p, s.send(p, s.message("msg"))
}

// converse answers the question of a task.
func (s *sender) converse() (*promise, bool) {
	p := &promise{agent: s.agent, messages: 2}
	if !s.send(p, s.message("ask")) || !s.awaitQuestion(p.taskID) {
		return p, false
	}
	answer := s.message("blue")
	answer.Message.TaskId = p.taskID
	return p, s.send(p, answer)
}

func (s *sender) awaitQuestion(id string) bool {
	for begun := time.Now(); time.Since(begun) < patience; <-time.After(pause) {
		task, ok := call[*a2apb.Task](s, binding.GetTask, &a2apb.GetTaskRequest{Id: id})
		if !ok || task.GetStatus().GetState() == a2apb.TaskState_TASK_STATE_INPUT_REQUIRED {
			return ok
		}
	}
	s.t.Errorf("task %s does not ask", id)
	return false
}

// call tries until there is a result.
func call[T proto.Message](s *sender, op binding.Op, in proto.Message) (T, bool) {
	for begun := time.Now(); time.Since(begun) < patience; s.giveWay() {
		answer, err := s.try(op, in)
		if err == nil && answer.Err == nil {
			result, ok := answer.Result.(T)
			return result, ok
		}
		if err == nil && !retryable(answer.Err) {
			s.t.Errorf("%s over %s refused: %v %v", op, s.way().Name(), answer.Err, in)
			break
		}
	}
	s.t.Errorf("%s over %s: no result", op, s.way().Name())
	var none T
	return none, false
}

func (s *sender) try(op binding.Op, in proto.Message) (*binding.Answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return s.way().Call(ctx, op, in) //nolint:wrapcheck // only counted
}

// retryable is what a sender is told when it may try again.
func retryable(e *binding.Error) bool {
	return e.Reason() == "UNAVAILABLE" || e.Reason() == "DEADLINE_EXCEEDED" || e.Reason() == "CANCELED"
}
