package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/a2ajson"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/services/gateway/internal/httpbind"
	"github.com/errandhq/errand/services/gateway/internal/load"
)

// body is a request body that has been read, together with what the path says.
type body struct {
	io.ReadCloser // what is left to read: nothing

	data   []byte
	params map[string]string
	limits config.Limits
	// Why it could not be decoded.
	err error
}

func newBody(data []byte, params map[string]string, limits config.Limits) *body {
	return &body{ReadCloser: http.NoBody, data: data, params: params, limits: limits}
}

// decode reads the body into m. No body and null are an empty message: the
// official clients send either to operations that have nothing to say.
func (b *body) decode(m proto.Message) error {
	text := bytes.TrimSpace(b.data)
	b.data = nil // which a request that waits would keep
	if len(text) > 0 && string(text) != "null" {
		b.err = a2ajson.Unmarshal(text, m, a2ajson.Limits{Depth: b.limits.Depth, Values: b.limits.Values})
	}
	if b.err == nil {
		b.err = b.agrees(m.ProtoReflect())
	}
	return b.err
}

// agrees refuses a member that differs from the path, which would win silently.
func (b *body) agrees(m protoreflect.Message) error {
	for name, value := range b.params {
		field := m.Descriptor().Fields().ByTextName(name)
		if said := m.Get(field).String(); said != "" && said != value {
			return a2aerr.Invalid(field.JSONName(), "must be the same as in the path")
		}
	}
	return nil
}

// marshaler makes grpc-gateway use our JSON.
type marshaler struct{ mediaType string }

func (m *marshaler) ContentType(any) string { return m.mediaType }

func (m *marshaler) Marshal(v any) ([]byte, error) {
	message, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("encode %T: not a message", v)
	}
	return a2ajson.Marshal(message)
}

func (m *marshaler) NewDecoder(r io.Reader) runtime.Decoder {
	return runtime.DecoderFunc(func(v any) error {
		b, isBody := r.(*body)
		message, isMessage := v.(proto.Message)
		if !isBody || !isMessage {
			return fmt.Errorf("decode %T from %T", v, r)
		}
		return b.decode(message)
	})
}

// Unmarshal and NewEncoder belong to routes that A2A doesn't have.

func (m *marshaler) Unmarshal([]byte, any) error { return errors.ErrUnsupported }

func (m *marshaler) NewEncoder(io.Writer) runtime.Encoder {
	return runtime.EncoderFunc(func(any) error { return errors.ErrUnsupported })
}

// beforeAnswer stands before each answer. What it counts is given back when the
// request leaves.
func beforeAnswer(ctx context.Context, w http.ResponseWriter, answer proto.Message) error {
	if _, err := load.Answer(ctx, proto.Size(answer)); err != nil {
		return err
	}
	return httpbind.Hurry(w)
}
