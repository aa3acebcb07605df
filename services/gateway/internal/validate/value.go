package validate

import (
	"math"
	"strconv"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/config"
)

// values checks the metadata and data of one request. It is for gRPC: what came as
// JSON has a JSON form, and was counted when it was read.
type values struct {
	depth int
	// How many more there may be.
	left int
}

func newValues(limits config.Limits) *values {
	return &values{depth: limits.Depth, left: limits.Values}
}

func (c *values) object(field string, s *structpb.Struct) error {
	if s == nil {
		return nil
	}
	return refuse(field, c.checkObject(s, c.depth))
}

func (c *values) value(field string, v *structpb.Value) error {
	return refuse(field, c.checkValue(v, c.depth))
}

// fault is what is wrong with a value. Its path grows while the check returns,
// so that nothing is written for values that are right.
type fault struct{ path, allowed string }

func (f *fault) in(step string) *fault {
	const longest = 200
	if f != nil && len(f.path) < longest {
		f.path = step[:min(longest, len(step))] + f.path
	}
	return f
}

func refuse(field string, f *fault) error {
	if f == nil {
		return nil
	}
	return a2aerr.Invalid(field+f.path, f.allowed)
}

func (c *values) checkObject(s *structpb.Struct, depth int) *fault {
	if depth == 0 {
		return &fault{allowed: "is nested too deep"}
	}
	for key, v := range s.GetFields() {
		if f := c.checkValue(v, depth-1); f != nil {
			return f.in("." + key)
		}
	}
	return nil
}

func (c *values) checkValue(v *structpb.Value, depth int) *fault {
	if c.left == 0 {
		return &fault{allowed: "is one value too many"}
	}
	c.left--
	switch kind := v.GetKind().(type) {
	case nil:
		return &fault{allowed: "must be a JSON value"}
	case *structpb.Value_NumberValue:
		if math.IsNaN(kind.NumberValue) || math.IsInf(kind.NumberValue, 0) {
			return &fault{allowed: "must be a finite number"}
		}
	case *structpb.Value_StructValue:
		return c.checkObject(kind.StructValue, depth)
	case *structpb.Value_ListValue:
		return c.checkList(kind.ListValue, depth)
	}
	return nil
}

func (c *values) checkList(l *structpb.ListValue, depth int) *fault {
	if depth == 0 {
		return &fault{allowed: "is nested too deep"}
	}
	for i, v := range l.GetValues() {
		if f := c.checkValue(v, depth-1); f != nil {
			return f.in("[" + strconv.Itoa(i) + "]")
		}
	}
	return nil
}
