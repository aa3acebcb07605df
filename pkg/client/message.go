package client

import (
	"fmt"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/errandhq/errand/pkg/task"
)

// NewMessage returns a user's message with an id of its own.
func NewMessage(parts ...*a2apb.Part) *a2apb.Message {
	return &a2apb.Message{MessageId: task.NewID(), Role: a2apb.Role_ROLE_USER, Parts: parts}
}

// Text returns a part of plain text.
func Text(text string) *a2apb.Part {
	return &a2apb.Part{Content: &a2apb.Part_Text{Text: text}}
}

// File returns a part with a file's content. The media type may be empty.
func File(name, mediaType string, content []byte) *a2apb.Part {
	return &a2apb.Part{Content: &a2apb.Part_Raw{Raw: content}, Filename: name, MediaType: mediaType}
}

// Data returns a part of structured data; value is what encoding/json makes of
// a JSON text.
func Data(value any) (*a2apb.Part, error) {
	data, err := structpb.NewValue(value)
	if err != nil {
		return nil, fmt.Errorf("data part: %w", err)
	}
	return &a2apb.Part{Content: &a2apb.Part_Data{Data: data}}, nil
}

// prepared returns the request with what a message needs to be sent twice.
func prepared(request *a2apb.SendMessageRequest) *a2apb.SendMessageRequest {
	m := request.GetMessage()
	if m == nil || m.GetMessageId() != "" && m.GetRole() != a2apb.Role_ROLE_UNSPECIFIED {
		return request
	}
	request = proto.CloneOf(request)
	m = request.GetMessage()
	if m.GetMessageId() == "" {
		m.MessageId = task.NewID()
	}
	if m.GetRole() == a2apb.Role_ROLE_UNSPECIFIED {
		m.Role = a2apb.Role_ROLE_USER
	}
	return request
}
