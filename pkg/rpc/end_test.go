package rpc_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	testv1 "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/errandhq/errand/pkg/rpc"
)

// A send that waits for its reader ends with the stream, before its handler does.
func TestAStreamThatIsEndedEndsTheSendThatWaitsForItsReader(t *testing.T) {
	t.Parallel()
	block := &testv1.StreamingOutputCallResponse{Payload: &testv1.Payload{Body: make([]byte, 32<<10)}}
	returned := make(chan struct{})
	_, client := serve(t, service{stream: func(stream testv1.TestService_FullDuplexCallServer) error {
		defer close(returned)
		for {
			ended := make(chan struct{})
			watchdog := time.AfterFunc(100*time.Millisecond, func() {
				defer close(ended)
				rpc.End(stream.Context(), status.New(codes.Unavailable, "not read"))
			})
			err := stream.Send(block)
			if !watchdog.Stop() {
				<-ended
				return status.Error(codes.Internal, "told too late")
			}
			if err != nil {
				return err
			}
		}
	}}, rpc.ServerConfig{})
	stream, err := client.FullDuplexCall(within(t))
	require.NoError(t, err)
	<-returned
	read := 0
	for ; err == nil; read++ {
		_, err = stream.Recv()
	}
	require.Greater(t, read, 1, "what was sent arrives")
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.Equal(t, "not read", status.Convert(err).Message())
}
