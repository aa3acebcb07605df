package client

import (
	"context"
	"fmt"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/proto"
)

const protocolVersion = "1.0"

// Names of the service parameters (A2A §3.2.6); metadata on gRPC.
const (
	versionParameter    = "A2A-Version"
	extensionsParameter = "A2A-Extensions"
)

// transport speaks one binding. Failures of the server are *Error; others are
// failures of the way there and back.
type transport interface {
	// call does a unary operation and fills response.
	call(ctx context.Context, op operation, request, response proto.Message) error
	// open begins a streaming operation. With the id of an event that was read
	// before, a server that can goes on after it.
	open(ctx context.Context, op operation, request proto.Message, lastEventID string) (stream, error)
	close() error
}

// stream is what a streaming operation answers. close ends it early and may be
// called twice.
type stream interface {
	// next returns io.EOF at the regular end.
	next() (event, error)
	close()
}

// event is one of a stream; the id is empty where the server gives none.
type event struct {
	id       string
	response *a2apb.StreamResponse
	// The server says that it leaves events out before this one.
	resync bool
}

func newTransport(iface *a2apb.AgentInterface, opts Options) (transport, error) {
	switch binding := iface.GetProtocolBinding(); binding {
	case JSONRPC:
		return newJSONRPC(iface.GetUrl(), opts), nil
	case HTTPJSON:
		return newREST(iface.GetUrl(), opts)
	case GRPC:
		return newGRPC(iface.GetUrl(), opts)
	default:
		return nil, fmt.Errorf("binding %q is not known", binding)
	}
}
