// Package validate checks the requests of senders before any work starts. Each
// refusal names the field by its JSON path and says what it may hold (A2A §5.7).
package validate

import (
	"fmt"
	"strconv"
	"strings"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/config"
)

// Send checks SendMessage and SendStreamingMessage.
func Send(r *a2apb.SendMessageRequest, limits config.Limits) error {
	if r.GetMessage() == nil {
		return a2aerr.Invalid("message", "is required")
	}
	values := newValues(limits)
	if err := message(r.GetMessage(), limits, values); err != nil {
		return err
	}
	c := r.GetConfiguration()
	if err := HistoryLength("configuration.historyLength", c.GetHistoryLength()); err != nil {
		return err
	}
	if len(c.GetAcceptedOutputModes()) > limits.References {
		return tooMany("configuration.acceptedOutputModes", limits.References)
	}
	return values.object("metadata", r.GetMetadata())
}

func message(m *a2apb.Message, limits config.Limits, values *values) error {
	if strings.TrimSpace(m.GetMessageId()) == "" {
		return a2aerr.Invalid("message.messageId", "must not be empty")
	}
	for _, id := range []struct{ field, value string }{
		{"message.messageId", m.GetMessageId()},
		{"message.contextId", m.GetContextId()},
		{"message.taskId", m.GetTaskId()},
	} {
		if err := optionalID(id.field, id.value, limits.ID); err != nil {
			return err
		}
	}
	if m.GetRole() != a2apb.Role_ROLE_USER {
		return a2aerr.Invalid("message.role", "must be ROLE_USER")
	}
	if err := parts(m.GetParts(), limits, values); err != nil {
		return err
	}
	if err := references(m, limits); err != nil {
		return err
	}
	if err := values.object("message.metadata", m.GetMetadata()); err != nil {
		return err
	}
	if proto.Size(m) > limits.Event {
		return a2aerr.TooLarge("message", fmt.Sprintf("may have at most %d bytes", limits.Event))
	}
	return nil
}

func parts(parts []*a2apb.Part, limits config.Limits, values *values) error {
	if len(parts) == 0 {
		return a2aerr.Invalid("message.parts", "must not be empty")
	}
	if len(parts) > limits.Parts {
		return tooMany("message.parts", limits.Parts)
	}
	for i, p := range parts {
		if err := part("message.parts["+strconv.Itoa(i)+"]", p, values); err != nil {
			return err
		}
	}
	return nil
}

func part(field string, p *a2apb.Part, values *values) error {
	switch content := p.GetContent().(type) {
	case nil:
		return a2aerr.Invalid(field, "must have one of text, raw, url, data")
	case *a2apb.Part_Url:
		if content.Url == "" {
			return a2aerr.Invalid(field+".url", "must not be empty")
		}
	case *a2apb.Part_Data:
		if err := values.value(field+".data", content.Data); err != nil {
			return err
		}
	}
	return values.object(field+".metadata", p.GetMetadata())
}

func references(m *a2apb.Message, limits config.Limits) error {
	if len(m.GetExtensions()) > limits.References {
		return tooMany("message.extensions", limits.References)
	}
	if len(m.GetReferenceTaskIds()) > limits.References {
		return tooMany("message.referenceTaskIds", limits.References)
	}
	for i, id := range m.GetReferenceTaskIds() {
		if err := optionalID("message.referenceTaskIds["+strconv.Itoa(i)+"]", id, limits.ID); err != nil {
			return err
		}
	}
	return nil
}

func tooMany(field string, limit int) error {
	return a2aerr.Invalid(field, fmt.Sprintf("may have at most %d entries", limit))
}
