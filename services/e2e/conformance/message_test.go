package conformance_test

import (
	"strings"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/uuid"
)

const (
	submitted     = a2apb.TaskState_TASK_STATE_SUBMITTED
	working       = a2apb.TaskState_TASK_STATE_WORKING
	completed     = a2apb.TaskState_TASK_STATE_COMPLETED
	failed        = a2apb.TaskState_TASK_STATE_FAILED
	canceled      = a2apb.TaskState_TASK_STATE_CANCELED
	rejected      = a2apb.TaskState_TASK_STATE_REJECTED
	inputRequired = a2apb.TaskState_TASK_STATE_INPUT_REQUIRED
	authRequired  = a2apb.TaskState_TASK_STATE_AUTH_REQUIRED
)

var terminal = map[a2apb.TaskState]bool{completed: true, failed: true, canceled: true, rejected: true}

// detail changes a message that is about to be sent.
type detail func(*a2apb.SendMessageRequest)

// say is a message of one text part under a fresh id.
func say(text string, details ...detail) *a2apb.SendMessageRequest {
	in := &a2apb.SendMessageRequest{
		Message: &a2apb.Message{
			MessageId: uuid.NewString(),
			Role:      a2apb.Role_ROLE_USER,
			Parts:     []*a2apb.Part{textPart(text)},
		},
		Configuration: &a2apb.SendMessageConfiguration{},
	}
	for _, d := range details {
		d(in)
	}
	return in
}

func textPart(text string) *a2apb.Part {
	return &a2apb.Part{Content: &a2apb.Part_Text{Text: text}}
}

func toTask(id string) detail {
	return func(in *a2apb.SendMessageRequest) { in.Message.TaskId = id }
}

func inContext(id string) detail {
	return func(in *a2apb.SendMessageRequest) { in.Message.ContextId = id }
}

// as gives the message an id.
func as(messageID string) detail {
	return func(in *a2apb.SendMessageRequest) { in.Message.MessageId = messageID }
}

func immediately(in *a2apb.SendMessageRequest) { in.Configuration.ReturnImmediately = true }

func withHistory(n int32) detail {
	return func(in *a2apb.SendMessageRequest) { in.Configuration.HistoryLength = &n }
}

func state(t *a2apb.Task) a2apb.TaskState { return t.GetStatus().GetState() }

// textOf joins the text parts.
func textOf(parts []*a2apb.Part) string {
	var text strings.Builder
	for _, p := range parts {
		text.WriteString(p.GetText())
	}
	return text.String()
}

func statusText(t *a2apb.Task) string { return textOf(t.GetStatus().GetMessage().GetParts()) }

// texts are the texts of the messages in order.
func texts(messages []*a2apb.Message) []string {
	all := make([]string, 0, len(messages))
	for _, m := range messages {
		all = append(all, textOf(m.GetParts()))
	}
	return all
}
