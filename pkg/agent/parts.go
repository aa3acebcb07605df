package agent

import (
	"encoding/json"
	"fmt"
	"strings"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/types/known/structpb"
)

// Text is a part of text.
func Text(text string) *a2apb.Part {
	return &a2apb.Part{Content: &a2apb.Part_Text{Text: text}}
}

// File is a part that holds a file.
func File(name, mediaType string, content []byte) *a2apb.Part {
	return &a2apb.Part{Content: &a2apb.Part_Raw{Raw: content}, Filename: name, MediaType: mediaType}
}

// FileURL is a part that says where a file is.
func FileURL(name, mediaType, url string) *a2apb.Part {
	return &a2apb.Part{Content: &a2apb.Part_Url{Url: url}, Filename: name, MediaType: mediaType}
}

// Data is a part that holds v as JSON. Numbers are doubles on the wire: whole
// numbers above 2^53 lose digits.
func Data(v any) (*a2apb.Part, error) {
	encoded, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode data part: %w", err)
	}
	value := new(structpb.Value)
	if err := value.UnmarshalJSON(encoded); err != nil {
		return nil, fmt.Errorf("encode data part: %w", err)
	}
	return &a2apb.Part{Content: &a2apb.Part_Data{Data: value}, MediaType: "application/json"}, nil
}

// TextOf is the text of a message: its text parts, one a line.
func TextOf(m *a2apb.Message) string {
	var texts []string
	for _, p := range m.GetParts() {
		if text, ok := p.GetContent().(*a2apb.Part_Text); ok {
			texts = append(texts, text.Text)
		}
	}
	return strings.Join(texts, "\n")
}
