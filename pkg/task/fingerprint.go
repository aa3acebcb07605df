package task

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"math"
	"slices"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Fingerprint is the canonical hash of a message, 32 bytes: equal for equal
// messages whatever binding, key order or program version they came through.
// Neither ProtoJSON nor protobuf's encoding promises that, hence our own.
// Fields that this program doesn't know are not part of it.
func Fingerprint(m *a2apb.Message) []byte {
	h := canonical{sha256.New()}
	h.text("errand message 1")
	h.message(m.ProtoReflect())
	return h.Sum(nil)
}

// canonical writes values to a hash so that different values differ: each is
// preceded by its field number or length.
type canonical struct{ hash.Hash }

func (h canonical) number(n uint64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n)
	h.Write(b[:]) // a hash never fails
}

func (h canonical) text(s string) {
	h.number(uint64(len(s)))
	h.Write([]byte(s)) // a hash never fails
}

func (h canonical) message(m protoreflect.Message) {
	var fields []protoreflect.FieldDescriptor
	m.Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		fields = append(fields, f)
		return true
	})
	slices.SortFunc(fields, func(a, b protoreflect.FieldDescriptor) int {
		return cmp.Compare(a.Number(), b.Number())
	})
	h.number(uint64(len(fields)))
	for _, f := range fields {
		h.number(uint64(f.Number())) //nolint:gosec // field numbers are positive
		h.field(f, m.Get(f))
	}
}

func (h canonical) field(f protoreflect.FieldDescriptor, v protoreflect.Value) {
	switch {
	case f.IsMap():
		h.mapping(f, v.Map())
	case f.IsList():
		list := v.List()
		h.number(uint64(list.Len())) //nolint:gosec // a length isn't negative
		for i := range list.Len() {
			h.value(f, list.Get(i))
		}
	default:
		h.value(f, v)
	}
}

func (h canonical) mapping(f protoreflect.FieldDescriptor, m protoreflect.Map) {
	var keys []string
	m.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k.String())
		return true
	})
	slices.Sort(keys)
	h.number(uint64(len(keys)))
	for _, k := range keys {
		h.text(k)
		h.value(f.MapValue(), m.Get(protoreflect.ValueOfString(k).MapKey()))
	}
}

func (h canonical) value(f protoreflect.FieldDescriptor, v protoreflect.Value) {
	switch f.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		h.message(v.Message())
	case protoreflect.BytesKind:
		h.text(string(v.Bytes()))
	case protoreflect.DoubleKind, protoreflect.FloatKind:
		h.number(math.Float64bits(v.Float() + 0)) // -0 and 0 are one number in JSON
	default:
		h.text(v.String())
	}
}
