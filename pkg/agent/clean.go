package agent

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"
)

// clean makes m encodable in place. What models put out isn't always UTF-8
// (text cut inside a character, half surrogates), and NaN has no JSON: one such
// value would make the whole task unreadable.
func clean(m protoreflect.Message) {
	if v, ok := m.Interface().(*structpb.Value); ok {
		cleanValue(v)
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap():
			cleanMap(f, v.Map())
		case f.IsList():
			cleanList(f, v.List())
		default:
			if replacement, changed := cleaned(f, v); changed {
				m.Set(f, replacement)
			}
		}
		return true
	})
}

func cleanList(f protoreflect.FieldDescriptor, list protoreflect.List) {
	for i := range list.Len() {
		if replacement, changed := cleaned(f, list.Get(i)); changed {
			list.Set(i, replacement)
		}
	}
}

func cleanMap(f protoreflect.FieldDescriptor, m protoreflect.Map) {
	var invalid []protoreflect.MapKey
	m.Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
		if replacement, changed := cleaned(f.MapValue(), v); changed {
			m.Set(k, replacement)
		}
		if _, changed := cleaned(f.MapKey(), k.Value()); changed {
			invalid = append(invalid, k)
		}
		return true
	})
	for _, k := range invalid {
		replacement, _ := cleaned(f.MapKey(), k.Value())
		m.Set(replacement.MapKey(), m.Get(k))
		m.Clear(k)
	}
}

// cleaned cleans a message in place and returns what replaces a string.
func cleaned(f protoreflect.FieldDescriptor, v protoreflect.Value) (protoreflect.Value, bool) {
	switch f.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		clean(v.Message())
	case protoreflect.StringKind:
		if valid := strings.ToValidUTF8(v.String(), "\uFFFD"); valid != v.String() {
			return protoreflect.ValueOfString(valid), true
		}
	default:
	}
	return v, false
}

func cleanValue(v *structpb.Value) {
	switch kind := v.GetKind().(type) {
	case nil:
		v.Kind = &structpb.Value_NullValue{}
	case *structpb.Value_NumberValue:
		if math.IsNaN(kind.NumberValue) || math.IsInf(kind.NumberValue, 0) {
			v.Kind = &structpb.Value_StringValue{StringValue: strconv.FormatFloat(kind.NumberValue, 'g', -1, 64)}
		}
	}
}

// checkParts finds what no A2A message or artifact may have.
func checkParts(parts []*a2apb.Part) error {
	if len(parts) == 0 {
		return fmt.Errorf("%w: no parts", ErrInvalid)
	}
	for i, p := range parts {
		if p.GetContent() == nil {
			return fmt.Errorf("%w: part %d has no content", ErrInvalid, i)
		}
	}
	return nil
}
