package a2ajson

import (
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/errandhq/errand/pkg/a2aerr"
)

// Limits bounds what is parsed; the size in bytes is the caller's to bound.
type Limits struct {
	// Depth is how deep arrays and objects may nest, the outermost included.
	Depth int
	// Values is how many values there may be, nested ones included.
	Values int
}

// Unmarshal reads ProtoJSON into m. What is not JSON is an a2aerr.ParseError;
// JSON that m cannot hold is an a2aerr.Invalid that names the member.
func Unmarshal(data []byte, m proto.Message, limits Limits) error {
	if err := Check(data, limits); err != nil {
		return err
	}
	err := protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(data, m)
	desc := m.ProtoReflect().Descriptor()
	switch {
	case err == nil && !lacksEnum(m.ProtoReflect()):
		return nil
	case err == nil:
		return locate(data, desc)
	case !json.Valid(data):
		return a2aerr.ParseError("the body is not valid JSON")
	}
	if err := locate(data, desc); err != nil {
		return err
	}
	return a2aerr.Invalid("body", "is not a valid "+string(desc.Name()))
}

// lacksEnum tells whether an enum of m itself is unset: DiscardUnknown drops
// names that it doesn't know without a word, and a filter would become none.
func lacksEnum(m protoreflect.Message) bool {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		if f := fields.Get(i); f.Kind() == protoreflect.EnumKind && !m.Has(f) {
			return true
		}
	}
	return false
}

// Check bounds nesting and number of values without parsing: neither protojson
// nor encoding/json can be told to stop early.
func Check(data []byte, limits Limits) error {
	depth, values := 0, 1
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = skipString(data, i)
		case '{', '[':
			depth++
			values++
		case '}', ']':
			depth--
		case ',':
			values++
		}
		if depth > limits.Depth {
			return a2aerr.Invalid("body", fmt.Sprintf("may be nested at most %d deep", limits.Depth))
		}
		if values > limits.Values {
			return a2aerr.Invalid("body", fmt.Sprintf("may hold at most %d values", limits.Values))
		}
	}
	return nil
}

// skipString returns the index of the quote that ends the string begun at i.
func skipString(data []byte, i int) int {
	for i++; i < len(data) && data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return i
}
