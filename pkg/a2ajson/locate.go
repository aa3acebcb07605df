package a2ajson

import (
	"bytes"
	"encoding/json"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// locate finds the member of a valid JSON document that a message cannot hold;
// nil if there is none. Protojson itself tells no more than a line and a column.
func locate(data []byte, desc protoreflect.MessageDescriptor) error {
	l := locator{data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	l.dec.UseNumber()
	return l.message(nil, desc, l.next())
}

// locator walks a document token by token beside the descriptor it should fit.
// The document is valid JSON and its depth is bounded.
type locator struct {
	data []byte
	dec  *json.Decoder
	// Where the current token stands in data, for what decoding loses.
	start, end int64
}

func (l *locator) next() json.Token {
	l.start = l.dec.InputOffset()
	token, err := l.dec.Token()
	if err != nil {
		return nil // not reached: the document is valid
	}
	l.end = l.dec.InputOffset()
	return token
}

func (l *locator) message(path *path, desc protoreflect.MessageDescriptor, token json.Token) error {
	if check, ok := wellKnown[desc.FullName()]; ok {
		return check(l, path, token)
	}
	if token != json.Delim('{') {
		return path.invalid("must be an object")
	}
	seen := map[protoreflect.FullName]bool{}
	for l.dec.More() {
		name, err := l.text(path, l.next())
		if err != nil {
			return err
		}
		field := desc.Fields().ByJSONName(name)
		if field == nil {
			field = desc.Fields().ByTextName(name)
		}
		if field == nil {
			if err := l.any(path.member(name), l.next()); err != nil {
				return err
			}
			continue
		}
		if err := l.field(path, field, seen); err != nil {
			return err
		}
	}
	l.next()
	return nil
}

func (l *locator) field(parent *path, field protoreflect.FieldDescriptor, seen map[protoreflect.FullName]bool) error {
	path := parent.member(field.JSONName())
	token := l.next()
	if seen[field.FullName()] {
		return path.invalid("must not be given twice")
	}
	seen[field.FullName()] = true
	if token == nil && field.Message() != nil && field.Message().FullName() == "google.protobuf.Value" {
		token = json.Delim('n') // null is a value there, not an absent member
	}
	if token == nil {
		return nil
	}
	if oneof := field.ContainingOneof(); oneof != nil && !oneof.IsSynthetic() {
		if seen[oneof.FullName()] {
			return parent.invalid("must have only one of " + members(oneof))
		}
		seen[oneof.FullName()] = true
	}
	switch {
	case field.IsMap():
		return l.mapping(path, field.MapValue(), token)
	case field.IsList():
		return l.list(path, field, token)
	}
	return l.value(path, field, token)
}

func (l *locator) list(path *path, field protoreflect.FieldDescriptor, token json.Token) error {
	if token != json.Delim('[') {
		return path.invalid("must be an array")
	}
	for i := 0; l.dec.More(); i++ {
		if err := l.value(path.element(i), field, l.next()); err != nil {
			return err
		}
	}
	l.next()
	return nil
}

func (l *locator) mapping(path *path, value protoreflect.FieldDescriptor, token json.Token) error {
	if token != json.Delim('{') {
		return path.invalid("must be an object")
	}
	for l.dec.More() {
		key, err := l.text(path, l.next())
		if err != nil {
			return err
		}
		if err := l.value(path.member(key), value, l.next()); err != nil {
			return err
		}
	}
	l.next()
	return nil
}

func members(oneof protoreflect.OneofDescriptor) string {
	var names []string
	for i := range oneof.Fields().Len() {
		names = append(names, oneof.Fields().Get(i).JSONName())
	}
	return strings.Join(names, ", ")
}
