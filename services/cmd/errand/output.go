package main

import (
	"fmt"
	"strings"
	"unicode/utf8"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/pkg/a2ajson"
	"github.com/errandhq/errand/pkg/task"
)

// json prints a message of the protocol on a line of its own.
func (c *console) json(m proto.Message) error {
	text, err := a2ajson.Marshal(m)
	if err != nil {
		return err
	}
	c.print(string(text) + "\n")
	return nil
}

// parts prints parts one after the other, texts as they are.
func (c *console) parts(parts []*a2apb.Part) {
	for _, part := range parts {
		if _, isText := part.GetContent().(*a2apb.Part_Text); !isText {
			c.endLine()
		}
		c.print(partText(part))
		if _, isText := part.GetContent().(*a2apb.Part_Text); !isText {
			c.endLine()
		}
	}
}

func partText(part *a2apb.Part) string {
	switch content := part.GetContent().(type) {
	case *a2apb.Part_Text:
		return content.Text
	case *a2apb.Part_Data:
		text, err := a2ajson.Marshal(content.Data)
		if err != nil {
			return "[data that can't be shown]"
		}
		return string(text)
	case *a2apb.Part_Url:
		return content.Url
	case *a2apb.Part_Raw:
		if readable(part.GetMediaType(), content.Raw) {
			return string(content.Raw)
		}
		return fmt.Sprintf("[%s, %s, %d bytes; --output json has them]", orUnnamed(part.GetFilename()), part.GetMediaType(), len(content.Raw))
	}
	return ""
}

func readable(mediaType string, content []byte) bool {
	return utf8.Valid(content) && (strings.HasPrefix(mediaType, "text/") || strings.Contains(mediaType, "json"))
}

func orUnnamed(name string) string {
	if name == "" {
		return "file"
	}
	return name
}

// textOf returns the text of a message, for a line.
func textOf(m *a2apb.Message) string {
	var texts []string
	for _, part := range m.GetParts() {
		if text := part.GetText(); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, " ")
}

// stateName returns a task's state as people say it.
func stateName(t *a2apb.Task) string { return nameOf(t.GetStatus().GetState()) }

func nameOf(s task.State) string {
	name := strings.TrimPrefix(s.String(), "TASK_STATE_")
	return strings.ToLower(strings.ReplaceAll(name, "_", "-"))
}
