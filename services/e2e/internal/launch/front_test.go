package launch

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testv1 "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/errandhq/errand/pkg/a2aerr"
)

// openTestFront is a front over gateways at addresses.
func openTestFront(t *testing.T, protocols http.Protocols, gateways ...string) *front {
	t.Helper()
	f, err := openFront(t.Context(), loopback)
	require.NoError(t, err)
	dials := make([]dial, len(gateways))
	for i, address := range gateways {
		dials[i] = (*network)(nil).dialer("front", "", address)
	}
	f.serve(dials, &protocols, slog.New(slog.DiscardHandler))
	t.Cleanup(f.close)
	return f
}

func webProtocols() (p http.Protocols) {
	p.SetHTTP1(true)
	return p
}

func rpcProtocols() (p http.Protocols) {
	p.SetUnencryptedHTTP2(true)
	return p
}

// webGateway counts the requests that it answers.
func webGateway(t *testing.T, handle http.HandlerFunc) (address string, requests *atomic.Int64) {
	t.Helper()
	requests = &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		handle(w, r)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String(), requests
}

func readBack(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	_, _ = w.Write(append([]byte(r.Host+r.URL.RequestURI()), body...))
}

// deadAddress has nobody who listens.
func deadAddress(t *testing.T) string {
	t.Helper()
	address, err := (&ports{given: map[int]bool{}}).address(t.Context())
	require.NoError(t, err)
	return address
}

func post(t *testing.T, f *front, path string) *http.Response {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Post("http://"+f.addr()+path, "application/json", strings.NewReader("{}"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

func TestGatewaysTakeTurns(t *testing.T) {
	t.Parallel()
	first, firstCount := webGateway(t, readBack)
	second, secondCount := webGateway(t, readBack)
	f := openTestFront(t, webProtocols(), first, second)
	for range 10 {
		res := post(t, f, "/tasks/a%2Fb:cancel?x=1;2")
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Equal(t, f.addr()+"/tasks/a%2Fb:cancel?x=1;2{}", string(body), "a gateway sees what was sent")
	}
	require.Equal(t, int64(5), firstCount.Load())
	require.Equal(t, int64(5), secondCount.Load())
}

func TestADeadGatewayIsPassedOver(t *testing.T) {
	t.Parallel()
	living, count := webGateway(t, readBack)
	f := openTestFront(t, webProtocols(), deadAddress(t), living)
	for range 10 {
		res := post(t, f, "/")
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, res.StatusCode)
		require.Equal(t, f.addr()+"/{}", string(body))
	}
	require.Equal(t, int64(10), count.Load())
}

func TestARequestThatMayHaveReachedAGatewayIsNotRepeated(t *testing.T) {
	t.Parallel()
	hangUp := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	first, firstCount := webGateway(t, hangUp)
	second, secondCount := webGateway(t, hangUp)
	f := openTestFront(t, webProtocols(), first, second)
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + f.addr())
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	require.Equal(t, http.StatusServiceUnavailable, res.StatusCode)
	require.Equal(t, int64(1), firstCount.Load()+secondCount.Load())
}

func TestWithoutAnAnswerOfAGatewayTheFrontRefusesAsOneWould(t *testing.T) {
	t.Parallel()
	hangUp, _ := webGateway(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	for _, gateway := range []string{deadAddress(t), hangUp} {
		f := openTestFront(t, webProtocols(), gateway)
		want := a2aerr.From(a2aerr.Unavailable("no gateway answered; send again", time.Second))
		rest, restErr := want.MarshalREST()
		require.NoError(t, restErr)
		requireRefused(t, post(t, f, "/message:send"), string(rest))
		object, rpcErr := want.MarshalJSONRPC()
		require.NoError(t, rpcErr)
		requireRefused(t, post(t, f, "/agents/a/rpc"), `{"jsonrpc":"2.0","id":null,"error":`+string(object)+"}")
	}
	_, err := rpcClient(t, openTestFront(t, rpcProtocols(), deadAddress(t))).EmptyCall(t.Context(), &testv1.Empty{})
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.Equal(t, "no gateway answered; send again", status.Convert(err).Message())
}

func requireRefused(t *testing.T, res *http.Response, want string) {
	t.Helper()
	require.Equal(t, http.StatusServiceUnavailable, res.StatusCode)
	require.Equal(t, "1", res.Header.Get("Retry-After"))
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.JSONEq(t, want, string(body))
}

func TestEventsPassAsTheyAreSent(t *testing.T) {
	t.Parallel()
	heard := make(chan struct{})
	gateway, _ := webGateway(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: 1\n")
		w.(http.Flusher).Flush()
		select {
		case <-heard:
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(w, "data: 2\n")
	})
	res := post(t, openTestFront(t, webProtocols(), gateway), "/")
	lines := bufio.NewReader(res.Body)
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "data: 1\n", line)
	close(heard)
	line, err = lines.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "data: 2\n", line)
}

// rpcGateway answers each streamed request with its header as trailer, and ends
// with an error.
type rpcGateway struct {
	testv1.UnimplementedTestServiceServer

	calls atomic.Int64
}

func (g *rpcGateway) EmptyCall(context.Context, *testv1.Empty) (*testv1.Empty, error) {
	g.calls.Add(1)
	return &testv1.Empty{}, nil
}

func (g *rpcGateway) FullDuplexCall(stream testv1.TestService_FullDuplexCallServer) error {
	header, _ := metadata.FromIncomingContext(stream.Context())
	stream.SetTrailer(metadata.MD{"said": header.Get("say")})
	for {
		in, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return status.Error(codes.NotFound, "no more")
		}
		if err != nil {
			return err
		}
		if err := stream.Send(&testv1.StreamingOutputCallResponse{Payload: in.GetPayload()}); err != nil {
			return err
		}
	}
}

func startRPCGateway(t *testing.T) (*rpcGateway, string) {
	t.Helper()
	listener, err := net.Listen("tcp", loopback)
	require.NoError(t, err)
	g, server := &rpcGateway{}, grpc.NewServer()
	testv1.RegisterTestServiceServer(server, g)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return g, listener.Addr().String()
}

func rpcClient(t *testing.T, f *front) testv1.TestServiceClient {
	t.Helper()
	conn, err := grpc.NewClient(f.addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return testv1.NewTestServiceClient(conn)
}

func TestCallsOfOneConnectionTakeTurns(t *testing.T) {
	t.Parallel()
	first, firstAddress := startRPCGateway(t)
	second, secondAddress := startRPCGateway(t)
	client := rpcClient(t, openTestFront(t, rpcProtocols(), firstAddress, deadAddress(t), secondAddress))
	for range 12 {
		_, err := client.EmptyCall(t.Context(), &testv1.Empty{})
		require.NoError(t, err)
	}
	require.NotZero(t, first.calls.Load())
	require.NotZero(t, second.calls.Load())
	require.Equal(t, int64(12), first.calls.Load()+second.calls.Load())
}

func TestAStreamPassesInBothDirectionsWithItsEnd(t *testing.T) {
	t.Parallel()
	_, address := startRPCGateway(t)
	client := rpcClient(t, openTestFront(t, rpcProtocols(), address))
	stream, err := client.FullDuplexCall(metadata.AppendToOutgoingContext(t.Context(), "say", "hello"))
	require.NoError(t, err)
	for _, word := range []string{"one", "two"} {
		require.NoError(t, stream.Send(&testv1.StreamingOutputCallRequest{Payload: &testv1.Payload{Body: []byte(word)}}))
		out, err := stream.Recv()
		require.NoError(t, err)
		require.Equal(t, word, string(out.GetPayload().GetBody()))
	}
	require.NoError(t, stream.CloseSend())
	_, err = stream.Recv()
	require.Equal(t, codes.NotFound, status.Code(err))
	require.Equal(t, "no more", status.Convert(err).Message())
	require.Equal(t, []string{"hello"}, stream.Trailer().Get("said"))
}
