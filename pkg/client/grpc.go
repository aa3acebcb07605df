package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// grpcTransport speaks A2A §10.
type grpcTransport struct {
	conn *grpc.ClientConn
	opts Options
}

func newGRPC(address string, opts Options) (*grpcTransport, error) {
	scheme, target, ok := strings.Cut(address, "://")
	if !ok || strings.HasPrefix(target, "/") {
		// host:port as A2A §4.4.6 has it, or a target of gRPC's own.
		scheme, target = "", address
	}
	dial := opts.DialOptions
	if len(dial) == 0 {
		dial = []grpc.DialOption{grpc.WithTransportCredentials(transportCredentials(scheme, target, opts))}
	}
	conn, err := grpc.NewClient(target, dial...)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	return &grpcTransport{conn: conn, opts: opts}, nil
}

func transportCredentials(scheme, target string, opts Options) credentials.TransportCredentials {
	host, _, _ := net.SplitHostPort(target)
	plain := scheme == "http" || opts.plaintext || host == "localhost" || net.ParseIP(host).IsLoopback()
	if plain && scheme != "https" {
		return insecure.NewCredentials()
	}
	return credentials.NewTLS(nil)
}

func (t *grpcTransport) call(ctx context.Context, op operation, request, response proto.Message) error {
	err := t.conn.Invoke(t.outgoing(ctx), fullMethod(op), request, response, grpc.MaxCallRecvMsgSize(t.opts.MaxResponse))
	return fromStatus(err)
}

// open has no use for an event id: gRPC streams carry none.
func (t *grpcTransport) open(ctx context.Context, op operation, request proto.Message, _ string) (stream, error) {
	ctx, cancel := context.WithCancel(t.outgoing(ctx))
	s, err := t.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, fullMethod(op), grpc.MaxCallRecvMsgSize(t.opts.MaxEvent))
	if err == nil {
		err = s.SendMsg(request)
	}
	if err == nil {
		err = s.CloseSend()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		cancel()
		return nil, fromStatus(err)
	}
	return &grpcStream{stream: s, cancel: cancel}, nil
}

func (t *grpcTransport) close() error { return t.conn.Close() }

func (t *grpcTransport) outgoing(ctx context.Context) context.Context {
	pairs := []string{versionParameter, protocolVersion}
	for name, values := range t.opts.Header {
		for _, value := range values {
			pairs = append(pairs, name, value)
		}
	}
	if len(t.opts.Extensions) > 0 {
		pairs = append(pairs, extensionsParameter, strings.Join(t.opts.Extensions, ","))
	}
	return metadata.AppendToOutgoingContext(ctx, pairs...)
}

func fullMethod(op operation) string {
	return "/" + a2apb.A2AService_ServiceDesc.ServiceName + "/" + op.method
}

type grpcStream struct {
	stream grpc.ClientStream
	cancel context.CancelFunc
}

func (s *grpcStream) next() (event, error) {
	response := &a2apb.StreamResponse{}
	switch err := s.stream.RecvMsg(response); {
	case errors.Is(err, io.EOF):
		return event{}, io.EOF
	case err != nil:
		return event{}, fromStatus(err)
	}
	return event{response: response}, nil
}

func (s *grpcStream) close() { s.cancel() }
