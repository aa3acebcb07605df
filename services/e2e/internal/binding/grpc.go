package binding

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

type grpcBinding struct {
	conn *grpc.ClientConn
	// Routing id of the agent: gRPC has no base path. Empty for the default agent.
	tenant string
}

func (*grpcBinding) Name() string { return "grpc" }

func (b *grpcBinding) Call(ctx context.Context, op Op, in proto.Message, options ...Option) (*Answer, error) {
	out, err := op.output()
	if err != nil {
		return nil, err
	}
	var header metadata.MD
	err = b.conn.Invoke(outgoing(ctx, options), op.rpc(), b.address(in), out, grpc.Header(&header))
	answer := &Answer{Header: asHeader(header)}
	if err == nil {
		answer.Result = out
		return answer, nil
	}
	if err := ended(ctx, err); err != nil {
		return nil, err
	}
	answer.Err = parseGRPC(status.Convert(err))
	return answer, nil
}

func (b *grpcBinding) Open(ctx context.Context, op Op, in proto.Message, options ...Option) (*Stream, *Answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := b.conn.NewStream(outgoing(ctx, options), &grpc.StreamDesc{ServerStreams: true}, op.rpc())
	if err == nil {
		err = errors.Join(stream.SendMsg(b.address(in)), stream.CloseSend())
	}
	if err != nil {
		cancel()
		return nil, nil, fmt.Errorf("%s: %w", op, err)
	}
	// A refusal is a status without headers of its own, or right after them;
	// the first message tells.
	first, err := receive(stream)
	if err != nil && !errors.Is(err, io.EOF) {
		defer cancel()
		if err := ended(ctx, err); err != nil {
			return nil, nil, err
		}
		return nil, &Answer{Err: parseGRPC(status.Convert(err))}, nil
	}
	header, headerErr := stream.Header()
	if headerErr != nil {
		cancel()
		return nil, nil, fmt.Errorf("%s: header: %w", op, headerErr)
	}
	return &Stream{Header: asHeader(header), cancel: cancel, next: following(stream, first, err)}, nil, nil
}

// following gives the first message, or the end in its place, and then the rest.
func following(stream grpc.ClientStream, first Event, end error) func() (Event, error) {
	begun := false
	return func() (Event, error) {
		if !begun {
			begun = true
			return first, end
		}
		e, err := receive(stream)
		if err == nil || errors.Is(err, io.EOF) {
			return e, err
		}
		if err := ended(stream.Context(), err); err != nil {
			return Event{}, err
		}
		return Event{}, parseGRPC(status.Convert(err))
	}
}

func receive(stream grpc.ClientStream) (Event, error) {
	e := Event{StreamResponse: &a2apb.StreamResponse{}}
	err := stream.RecvMsg(e.StreamResponse)
	return e, err //nolint:wrapcheck // io.EOF is a value of its own
}

// ended tells a call that ended on our side, or without a connection, from one
// that the server refused.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil || status.Code(err) == codes.Unavailable && len(status.Convert(err).Details()) == 0 {
		return fmt.Errorf("call: %w", err)
	}
	return nil
}

// address sets the routing id in a copy of the request, unless it has one.
func (b *grpcBinding) address(in proto.Message) proto.Message {
	tenant := in.ProtoReflect().Descriptor().Fields().ByName("tenant")
	if b.tenant == "" || in.ProtoReflect().Has(tenant) {
		return in
	}
	in = proto.Clone(in)
	in.ProtoReflect().Set(tenant, protoreflect.ValueOfString(b.tenant))
	return in
}

func outgoing(ctx context.Context, options []Option) context.Context {
	md := metadata.MD{}
	for name, values := range newCall(options).header {
		md[strings.ToLower(name)] = values
	}
	return metadata.NewOutgoingContext(ctx, md)
}

func asHeader(md metadata.MD) http.Header {
	h := http.Header{}
	for name, values := range md {
		h[http.CanonicalHeaderKey(name)] = values
	}
	return h
}
