package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/task"
)

// overload is an error that is worth a retry, as each binding tells it.
type overload struct {
	reason, code, name string
	http               int
}

var (
	unavailable = overload{a2aerr.ReasonUnavailable, "Unavailable", "UNAVAILABLE", http.StatusServiceUnavailable}
	exhausted   = overload{a2aerr.ReasonExhausted, "ResourceExhausted", "RESOURCE_EXHAUSTED", http.StatusTooManyRequests}
)

func (want overload) check(t *testing.T, over binding, got *failed) {
	t.Helper()
	require.NotNil(t, got)
	require.Equal(t, want.reason, got.reason)
	require.Positive(t, got.retry)
	switch over.(type) {
	case overGRPC:
		require.Equal(t, want.code, got.code)
	case overREST:
		require.Equal(t, want.name, got.code)
		require.Equal(t, want.http, got.http)
	default:
		require.Equal(t, -32603, got.jsonrpc)
	}
}

// refused wants a unary and a streaming operation to be refused.
func (want overload) refused(t *testing.T, b *bench, over binding, id string) {
	t.Helper()
	got := over.call(t.Context(), b, "SendMessage", atOnce(say(id, "x")))
	want.check(t, over, got.failed)
	if got.header != nil {
		require.NotEmpty(t, got.header.Get("Retry-After"))
	}
	_, failed := over.stream(t.Context(), b, "SendStreamingMessage", say(id, "x"))
	want.check(t, over, failed)
}

func limited(limits string) option {
	return withAgents(strings.Replace(defaultAgents, "limits: {", "limits: {"+limits+", ", 1))
}

func TestRequestsOverTheLimitAreRefused(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t, limited("requests: 3"))
		accepting, gate := make(chan struct{}), make(chan struct{})
		b.store.hold = func(context.Context) error {
			accepting <- struct{}{}
			<-gate
			return nil
		}
		var sends sync.WaitGroup
		for i := range 3 {
			sends.Go(func() { over.call(t.Context(), b, "SendMessage", atOnce(say(fmt.Sprint(i), "x"))).task(t) })
			<-accepting
		}
		unavailable.refused(t, b, over, "refused")
		unavailable.check(t, over, over.call(t.Context(), b, "GetTask", `{"id":"t"}`).failed)
		close(gate)
		sends.Wait()
		require.Equal(t, a2aerr.ReasonTaskNotFound, over.call(t.Context(), b, "GetTask", `{"id":"t"}`).failed.reason)
		require.Len(t, b.store.tasks, 3)
	})
}

func TestWhoWaitsForATaskIsNoRequestAnyMore(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t, limited("requests: 1, body_memory: 1048576"))
		scripted(b.store)
		large := strings.Repeat("x", 90_000)
		var sends sync.WaitGroup
		for i := range 20 { // twenty bodies are more than fit
			sends.Go(func() {
				r := say(fmt.Sprint(i), "wait", fmt.Sprintf(`"metadata":{"large":%q}`, large))
				over.call(t.Context(), b, "SendMessage", r)
			})
			waitForTasks(t, b, i+1)
			require.Eventually(t, func() bool {
				return over.call(t.Context(), b, "GetTask", `{"id":"t"}`).failed.reason == a2aerr.ReasonTaskNotFound
			}, 10*time.Second, time.Millisecond)
		}
		stream := openStream(t, over, b, "SendStreamingMessage", say("s", "wait"))
		stream.read(t)
		require.Equal(t, a2aerr.ReasonTaskNotFound, over.call(t.Context(), b, "GetTask", `{"id":"t"}`).failed.reason)
		for id := range b.store.tasks {
			b.store.emit(id, status(task.Working, ""), status(task.Completed, ""))
		}
		sends.Wait()
	})
}

func TestBodiesOverTheMemoryAreRefused(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t, limited("body_memory: 1048576"))
		accepting, gate := make(chan struct{}), make(chan struct{})
		b.store.hold = func(context.Context) error {
			accepting <- struct{}{}
			<-gate
			return nil
		}
		large := func(id string) string {
			return atOnce(say(id, "x", fmt.Sprintf(`"metadata":{"large":%q}`, strings.Repeat("x", 95_000))))
		}
		var sends sync.WaitGroup
		for i := range 11 {
			sends.Go(func() { over.call(t.Context(), b, "SendMessage", large(fmt.Sprint(i))).task(t) })
			<-accepting
		}
		// Over JSON-RPC the refusal has no id, which was in the body.
		if _, ok := over.(overJSONRPC); ok {
			res := b.send(t.Context(), http.MethodPost, "/rpc", envelope("SendMessage", large("refused")))
			require.NotEmpty(t, res.Header.Get("Retry-After"))
			require.Contains(t, b.body(res), `"id":null,"error":{"code":-32603`)
		} else {
			unavailable.check(t, over, over.call(t.Context(), b, "SendMessage", large("refused")).failed)
			_, failed := over.stream(t.Context(), b, "SendStreamingMessage", large("refused"))
			unavailable.check(t, over, failed)
		}
		close(gate)
		sends.Wait()
		b.store.hold = nil
		over.call(t.Context(), b, "SendMessage", large("later")).task(t)
	})
}

func TestStreamsAndWaitsOverTheLimitAreRefused(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t, limited("streams: 1, waits: 1"))
		scripted(b.store)
		stream := openStream(t, over, b, "SendStreamingMessage", say("s", "wait"))
		stream.read(t)
		var send sync.WaitGroup
		send.Go(func() { over.call(t.Context(), b, "SendMessage", say("w", "wait")) })
		waitForTasks(t, b, 2)
		unavailable.check(t, over, over.call(t.Context(), b, "SendMessage", say("w2", "x")).failed)
		_, failed := over.stream(t.Context(), b, "SendStreamingMessage", say("s2", "x"))
		unavailable.check(t, over, failed)
		for id := range b.store.tasks {
			_, failed := over.stream(t.Context(), b, "SubscribeToTask", `{"id":"`+id+`"}`)
			unavailable.check(t, over, failed)
		}
		over.call(t.Context(), b, "SendMessage", atOnce(say("m", "x"))).task(t)
		for id := range b.store.tasks {
			b.store.emit(id, status(task.Working, ""), status(task.Completed, ""))
		}
		send.Wait()
	})
}

func TestAFullQueueIsToldOnEachBinding(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		b.store.hold = func(context.Context) error { return a2aerr.Exhausted("the agent's queue is full", 2*time.Second) }
		exhausted.refused(t, b, over, "m")
	})
}

// silence makes a task store take calls and never answer while it hangs.
type silence struct {
	mu    sync.Mutex
	hangs func(call int) bool
	calls int
}

func (s *silence) unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	s.mu.Lock()
	hangs := s.hangs != nil && s.hangs(s.calls)
	s.calls++
	s.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return next(ctx, req)
}

func (s *silence) when(hangs func(call int) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangs, s.calls = hangs, 0
}

func TestAStoreThatHangsMakesNobodyHang(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t, limited("call: 200ms"))
		id := over.call(t.Context(), b, "SendMessage", atOnce(say("m", "wait"))).task(t).GetId()
		b.store.silence.when(func(int) bool { return true })
		for operation, params := range map[string]string{
			"SendMessage": say("m2", "x"), "GetTask": `{"id":"` + id + `"}`, "ListTasks": `{}`, "CancelTask": `{"id":"` + id + `"}`,
		} {
			begun := time.Now()
			unavailable.check(t, over, over.call(t.Context(), b, operation, params).failed)
			require.Less(t, time.Since(begun), 5*time.Second, operation)
		}
		for operation, params := range map[string]string{"SendStreamingMessage": say("m3", "x"), "SubscribeToTask": `{"id":"` + id + `"}`} {
			_, failed := over.stream(t.Context(), b, operation, params)
			unavailable.check(t, over, failed)
		}
		b.store.silence.when(nil)
		require.Equal(t, id, over.call(t.Context(), b, "GetTask", `{"id":"`+id+`"}`).task(t).GetId())
	})
}

// What may come twice is sent again, which reaches another store where there is one.
func TestWhatOneStoreDoesNotAnswerIsAskedAgain(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t, limited("call: 200ms"))
		first := func(call int) bool { return call == 0 }
		b.store.silence.when(first)
		id := over.call(t.Context(), b, "SendMessage", atOnce(say("m", "wait"))).task(t).GetId()
		for _, operation := range []string{"GetTask", "CancelTask"} {
			b.store.silence.when(first)
			require.Equal(t, id, over.call(t.Context(), b, operation, `{"id":"`+id+`"}`).task(t).GetId())
		}
		b.store.silence.when(first)
		writes := b.store.writes
		unavailable.check(t, over, over.call(t.Context(), b, "SendMessage",
			strings.Replace(atOnce(say("m", "x")), `{"message"`, `{"tenant":"self.repeat","message"`, 1)).failed)
		require.Equal(t, writes, b.store.writes, "an agent without de-duplication would get it twice")
	})
}

func TestTheSendersOwnDeadlineIsNoOverload(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.store.silence.when(func(int) bool { return true })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.Equal(t, "DeadlineExceeded", overGRPC{}.call(ctx, b, "GetTask", `{"id":"t"}`).failed.code)
}

func TestARequestThatIsTooLargeForGRPCSaysSo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	large := strings.Replace(hello, `"hi"`, `"`+strings.Repeat("x", 150_000)+`"`, 1)
	for _, got := range []*failed{
		overGRPC{}.call(t.Context(), b, "SendMessage", large).failed,
		func() *failed { _, f := overGRPC{}.stream(t.Context(), b, "SendStreamingMessage", large); return f }(),
	} {
		require.Equal(t, a2aerr.ReasonTooLarge, got.reason)
		require.Equal(t, "ResourceExhausted", got.code)
		require.Equal(t, "body", got.field)
		require.Zero(t, got.retry)
	}
}

func TestValuesAreCountedOnGRPCToo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	list := &structpb.ListValue{}
	for range 600 {
		list.Values = append(list.Values, structpb.NewNullValue())
	}
	send := func(lists int) error {
		r := request("SendMessage", hello).(*a2apb.SendMessageRequest)
		for range lists {
			r.Message.Parts = append(r.Message.Parts, &a2apb.Part{Content: &a2apb.Part_Data{Data: structpb.NewListValue(list)}})
		}
		return b.grpc.Invoke(outgoing(t.Context()), "/lf.a2a.v1.A2AService/SendMessage", r, &a2apb.SendMessageResponse{})
	}
	got := fromGRPC(send(2))
	require.Equal(t, a2aerr.ReasonInvalidParams, got.reason)
	require.Contains(t, got.field, "message.parts[2].data[")
	require.NoError(t, send(1))
}

// Who doesn't read what it asked for must not fill the memory.
func TestAnswersThatNobodyReadsAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, limited("body_memory: 33554432"))
	id := overREST{}.call(t.Context(), b, "SendMessage", atOnce(say("m", "wait"))).task(t).GetId()
	for i := range 12 { // far more than sockets hold
		b.store.emit(id, artifact(fmt.Sprint(i), strings.Repeat("x", 2<<20), false))
	}
	unread, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", b.gateway.HTTPAddr())
	require.NoError(t, err)
	defer func() { _ = unread.Close() }()
	require.NoError(t, unread.(*net.TCPConn).SetReadBuffer(64<<10))
	_, err = fmt.Fprintf(unread, "GET /tasks/%s:subscribe HTTP/1.1\r\nHost: gateway\r\nA2A-Version: 1.0\r\n\r\n", id)
	require.NoError(t, err)
	for line, lines := "", bufio.NewReader(unread); !strings.HasPrefix(line, "id:"); { // and no further
		line, err = lines.ReadString('\n')
		require.NoError(t, err)
	}
	get := func() *failed { return overREST{}.call(t.Context(), b, "GetTask", `{"id":"`+id+`"}`).failed }
	unavailable.check(t, overREST{}, get())
	unavailable.check(t, overJSONRPC{}, overJSONRPC{}.call(t.Context(), b, "GetTask", `{"id":"`+id+`"}`).failed)
	for _, over := range bindings {
		stream, refused := over.stream(t.Context(), b, "SubscribeToTask", `{"id":"`+id+`"}`)
		if refused != nil {
			unavailable.check(t, over, refused)
			continue
		}
		_, _, err := stream.next()
		require.ErrorContains(t, err, "too many answers wait")
		stream.close()
	}
	require.NoError(t, unread.Close())
	require.Eventually(t, func() bool { return get() == nil }, 10*time.Second, 10*time.Millisecond)
}
