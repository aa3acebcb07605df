package a2ajson

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// wellKnown are the messages with a JSON form of their own.
var wellKnown = map[protoreflect.FullName]func(*locator, *path, json.Token) error{
	"google.protobuf.Value":     (*locator).any,
	"google.protobuf.Struct":    (*locator).object,
	"google.protobuf.Timestamp": (*locator).timestamp,
}

// value checks one element against the kind of its field.
func (l *locator) value(path *path, field protoreflect.FieldDescriptor, token json.Token) error {
	switch field.Kind() {
	case protoreflect.MessageKind:
		return l.message(path, field.Message(), token)
	case protoreflect.StringKind:
		_, err := l.text(path, token)
		return err
	case protoreflect.BytesKind:
		return l.base64(path, token)
	case protoreflect.BoolKind:
		if _, ok := token.(bool); !ok {
			return path.invalid("must be true or false")
		}
	case protoreflect.EnumKind:
		return enum(path, field.Enum(), token)
	default:
		return integer(path, token)
	}
	return nil
}

// text refuses what is no string and strings that are not Unicode: decoding
// has replaced their broken bytes and lone surrogates.
func (l *locator) text(path *path, token json.Token) (string, error) {
	s, ok := token.(string)
	if !ok {
		return "", path.invalid("must be a string")
	}
	raw := l.data[l.start:l.end]
	written := strings.Count(string(raw), string(utf8.RuneError)) +
		bytes.Count(bytes.ToLower(raw), []byte(`\ufffd`))
	if utf8.Valid(raw) && strings.Count(s, string(utf8.RuneError)) <= written {
		return s, nil
	}
	return "", path.invalid("must be valid Unicode text")
}

func (l *locator) base64(path *path, token json.Token) error {
	s, err := l.text(path, token)
	if err != nil {
		return err
	}
	standard := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(s, "="))
	if _, err := base64.RawStdEncoding.DecodeString(standard); err != nil {
		return path.invalid("must be base64")
	}
	return nil
}

func (l *locator) timestamp(path *path, token json.Token) error {
	s, _ := token.(string)
	if t, err := time.Parse(time.RFC3339Nano, s); err != nil || !timestamppb.New(t).IsValid() {
		return path.invalid("must be a time such as 2026-03-01T09:00:00.120Z")
	}
	return nil
}

func (l *locator) object(path *path, token json.Token) error {
	if token != json.Delim('{') {
		return path.invalid("must be an object")
	}
	return l.any(path, token)
}

// any checks what a google.protobuf.Value cannot hold: numbers beyond a double
// and strings that are not Unicode.
func (l *locator) any(path *path, token json.Token) error {
	switch token := token.(type) {
	case json.Number:
		if _, err := token.Float64(); err != nil {
			return path.invalid("must be a number that a 64-bit float can hold")
		}
	case string:
		_, err := l.text(path, token)
		return err
	case json.Delim:
		return l.nested(path, token)
	}
	return nil
}

func (l *locator) nested(path *path, open json.Delim) error {
	if open != '{' && open != '[' {
		return nil
	}
	seen := map[string]bool{}
	for i := 0; l.dec.More(); i++ {
		at := path.element(i)
		if open == '{' {
			key, err := l.text(path, l.next())
			if err != nil {
				return err
			}
			at = path.member(key)
			if seen[key] {
				return at.invalid("must not be given twice")
			}
			seen[key] = true
		}
		if err := l.any(at, l.next()); err != nil {
			return err
		}
	}
	l.next()
	return nil
}

func enum(path *path, desc protoreflect.EnumDescriptor, token json.Token) error {
	if name, ok := token.(string); ok && desc.Values().ByName(protoreflect.Name(name)) != nil {
		return nil
	}
	if number, ok := token.(json.Number); ok {
		if _, err := strconv.ParseInt(number.String(), 10, 32); err == nil {
			return nil
		}
	}
	return path.invalid("must be one of " + enumNames(desc))
}

func enumNames(desc protoreflect.EnumDescriptor) string {
	var names []string
	for i := 1; i < desc.Values().Len(); i++ { // 0 is UNSPECIFIED
		names = append(names, string(desc.Values().Get(i).Name()))
	}
	return strings.Join(names, ", ")
}

// integer covers the only number kind of A2A messages, int32; ProtoJSON takes
// it as text too.
func integer(path *path, token json.Token) error {
	var text string
	switch token := token.(type) {
	case json.Number:
		text = token.String()
	case string:
		text = token
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != float64(int32(f)) {
		return path.invalid("must be a whole number of 32 bits")
	}
	return nil
}
