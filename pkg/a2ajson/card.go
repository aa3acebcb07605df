package a2ajson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// marshalCard prints REQUIRED members also when they are empty and sorts all
// members, so that the same card has the same bytes everywhere.
func marshalCard(card *a2apb.AgentCard) ([]byte, error) {
	text, err := marshal(card)
	if err != nil {
		return nil, err
	}
	object := map[string]any{}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&object); err != nil {
		return nil, fmt.Errorf("decode card: %w", err)
	}
	fill(object, card.ProtoReflect().Descriptor())

	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(object); err != nil {
		return nil, fmt.Errorf("encode card: %w", err)
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}

// fill adds the REQUIRED members that object lacks, at every level.
func fill(object map[string]any, desc protoreflect.MessageDescriptor) {
	for i := range desc.Fields().Len() {
		field := desc.Fields().Get(i)
		value, there := object[field.JSONName()]
		if !there && required(field) {
			value = empty(field)
			object[field.JSONName()] = value
		}
		if field.Message() == nil {
			continue
		}
		switch value := value.(type) {
		case map[string]any:
			fillObject(value, field)
		case []any:
			for _, element := range value {
				if element, ok := element.(map[string]any); ok {
					fillObject(element, field)
				}
			}
		}
	}
}

func fillObject(object map[string]any, field protoreflect.FieldDescriptor) {
	if !field.IsMap() {
		if _, special := wellKnown[field.Message().FullName()]; !special {
			fill(object, field.Message())
		}
		return
	}
	if field.MapValue().Message() == nil {
		return
	}
	for _, value := range object {
		if value, ok := value.(map[string]any); ok {
			fill(value, field.MapValue().Message())
		}
	}
}

func required(field protoreflect.FieldDescriptor) bool {
	behaviors, _ := proto.GetExtension(field.Options(), annotations.E_FieldBehavior).([]annotations.FieldBehavior)
	return slices.Contains(behaviors, annotations.FieldBehavior_REQUIRED)
}

func empty(field protoreflect.FieldDescriptor) any {
	switch {
	case field.IsList():
		return []any{}
	case field.IsMap(), field.Kind() == protoreflect.MessageKind:
		return map[string]any{}
	case field.Kind() == protoreflect.BoolKind:
		return false
	}
	return ""
}
