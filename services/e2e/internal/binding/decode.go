package binding

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// strict decodes one JSON value and nothing else; members that v lacks are
// errors.
func strict(raw []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("bytes after the JSON value")
	}
	return nil
}

// decode reads a result as strictly as the strictest client: unknown members,
// nulls in the place of lists and names that are not lowerCamelCase are errors
// (A2A §5.5).
func decode(raw []byte, out proto.Message) error {
	if err := protojson.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("decode %s from %s: %w", out.ProtoReflect().Descriptor().Name(), raw, err)
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	if path := unfit(v, ""); path != "" {
		return fmt.Errorf("%s is null, or no lowerCamelCase name, in %s", path, raw)
	}
	return nil
}

// foreign are the members whose names and values are not A2A's own.
var foreign = map[string]bool{"data": true, "metadata": true, "params": true, "header": true, "schemes": true, "securitySchemes": true, "scopes": true}

// unfit finds the first null, or name with an underscore, outside of foreign
// values.
func unfit(v any, path string) string {
	switch v := v.(type) {
	case nil:
		return path
	case []any:
		for i, e := range v {
			if found := unfit(e, fmt.Sprintf("%s[%d]", path, i)); found != "" {
				return found
			}
		}
	case map[string]any:
		for name, e := range v {
			if strings.Contains(name, "_") {
				return path + "." + name
			}
			if found := unfit(e, path+"."+name); found != "" && !foreign[name] {
				return found
			}
		}
	}
	return ""
}

func encode(in proto.Message) ([]byte, error) {
	raw, err := protojson.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", in.ProtoReflect().Descriptor().Name(), err)
	}
	return raw, nil
}
