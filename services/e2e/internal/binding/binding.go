package binding

import (
	"context"
	"net/http"

	"google.golang.org/protobuf/proto"
)

// Version is the protocol version that calls carry unless told otherwise.
const Version = "1.0"

// Binding is one way to call an agent. An error of Call and Open says that the
// call failed below A2A (no connection, an answer that breaks the binding); an
// A2A error is part of the answer.
type Binding interface {
	// Name is jsonrpc, rest or grpc.
	Name() string
	Call(ctx context.Context, op Op, in proto.Message, options ...Option) (*Answer, error)
	// Open starts one of the two streaming operations. A refusal before the
	// first event is an answer and no stream.
	Open(ctx context.Context, op Op, in proto.Message, options ...Option) (*Stream, *Answer, error)
}

// JSON is a binding that takes requests as JSON, which can say more than a
// proto message can hold.
type JSON interface {
	Binding
	CallJSON(ctx context.Context, op Op, params string, options ...Option) (*Answer, error)
}

// Answer is the end of a call without a stream.
type Answer struct {
	// Result is nil when Err is set.
	Result proto.Message
	Err    *Error
	// JSON is the result as it was sent; nil on gRPC.
	JSON []byte
	// Status is the HTTP status; 0 on gRPC.
	Status int
	// Header has what came as HTTP headers or gRPC header metadata.
	Header http.Header
}

// Option changes one call.
type Option func(*call)

// call is what options can change: service parameters and headers.
type call struct {
	header http.Header
}

// With sets a service parameter or header; without values it removes it.
func With(name string, values ...string) Option {
	return func(c *call) {
		if len(values) == 0 {
			c.header.Del(name)
			return
		}
		c.header[http.CanonicalHeaderKey(name)] = values
	}
}

func newCall(options []Option) call {
	c := call{header: http.Header{}}
	c.header.Set("A2A-Version", Version)
	for _, o := range options {
		o(&c)
	}
	return c
}
