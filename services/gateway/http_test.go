package gateway_test

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/sse"
	"github.com/errandhq/errand/pkg/task"
)

func TestRESTTakesBothJSONTypesAndAnswersInTheRightOne(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const older, newer = "application/json", "application/a2a+json"
	for _, tc := range []struct{ contentType, accept, want string }{
		{older, "", older},
		{newer, "", newer},
		{newer + "; charset=utf-8", "*/*", newer},
		{newer, older, older},
		{older, newer, newer},
		{older, older + ", " + newer, newer},
		{older, "*/*", older},
		{"application/json;charset=UTF-8", "text/event-stream", older},
	} {
		res := b.send(t.Context(), http.MethodPost, "/message:send", hello, "Content-Type", tc.contentType, "Accept", tc.accept)
		require.Equal(t, http.StatusOK, res.StatusCode, tc)
		require.Equal(t, tc.want, res.Header.Get("Content-Type"), tc)
		res = b.send(t.Context(), http.MethodPost, "/message:send", "{}", "Content-Type", tc.contentType, "Accept", tc.accept)
		require.Equal(t, http.StatusBadRequest, res.StatusCode, tc)
		require.Equal(t, tc.want, res.Header.Get("Content-Type"), "errors too: %v", tc)
	}
}

func TestOtherContentTypesAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, contentType := range []string{"text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""} {
		res := b.send(t.Context(), http.MethodPost, "/message:send", hello, "Content-Type", contentType)
		require.Equal(t, http.StatusUnsupportedMediaType, res.StatusCode, contentType)
		require.Contains(t, b.body(res), `"code":415`)
		res = b.send(t.Context(), http.MethodPost, "/rpc", envelope("GetTask", `{"id":"x"}`), "Content-Type", contentType)
		require.Equal(t, http.StatusUnsupportedMediaType, res.StatusCode, contentType)
		require.Contains(t, b.body(res), `{"jsonrpc":"2.0","id":null,"error":{"code":-32005`)
	}
	require.Zero(t, b.store.writes)
	require.Equal(t, http.StatusOK, b.send(t.Context(), http.MethodGet, "/tasks", "", "Content-Type", "text/plain").StatusCode, "GET has no body to be of a type")
}

func TestRESTPathsWithOddIDs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, tc := range []struct {
		method, path string
		status       int
		reason       string
	}{
		{"GET", "/tasks/user:123", 404, "TASK_NOT_FOUND"},
		{"GET", "/tasks/a%3Acancel", 404, "TASK_NOT_FOUND"},
		{"GET", "/tasks/a%2Fb", 404, "TASK_NOT_FOUND"},
		{"GET", "/tasks/a%252Fb", 404, "TASK_NOT_FOUND"},
		{"GET", "/tasks/tasks", 404, "TASK_NOT_FOUND"},
		{"GET", "/tasks/extendedAgentCard", 404, "TASK_NOT_FOUND"},
		{"GET", "/tasks/%FF", 400, "INVALID_PARAMS"},
		{"GET", "/tasks/%00", 400, "INVALID_PARAMS"},
		{"GET", "/self.echo/tasks/x:subscribe", 404, "TASK_NOT_FOUND"},
		{"POST", "/tasks/x:y:cancel", 404, "TASK_NOT_FOUND"},
		{"POST", "/tasks/x%3Acancel:cancel", 404, "TASK_NOT_FOUND"},
		{"GET", "/tasks/x/pushNotificationConfigs/c:1", 400, "PUSH_NOTIFICATION_NOT_SUPPORTED"},
		{"POST", "/tasks/x:explode", 405, "METHOD_NOT_FOUND"},
		{"DELETE", "/tasks/x", 405, "METHOD_NOT_FOUND"},
		{"GET", "/message:send", 405, "METHOD_NOT_FOUND"},
		{"PUT", "/tasks", 405, "METHOD_NOT_FOUND"},
		{"GET", "/", 404, "METHOD_NOT_FOUND"},
		{"GET", "/nothing/here/at/all", 404, "METHOD_NOT_FOUND"},
		{"POST", "/message:explode", 404, "METHOD_NOT_FOUND"},
		{"GET", "//tasks/x", 404, "TASK_NOT_FOUND"}, // a base URL with a slash at its end
		{"GET", "/v1/card", 404, "METHOD_NOT_FOUND"},
	} {
		res := b.send(t.Context(), tc.method, tc.path, "")
		require.Equal(t, tc.status, res.StatusCode, "%s %s", tc.method, tc.path)
		require.Equal(t, "application/json", res.Header.Get("Content-Type"), tc.path)
		require.Equal(t, tc.status == 405, res.Header.Get("Allow") != "", tc.path)
		require.Contains(t, b.body(res), `"reason":"`+tc.reason+`"`, tc.path)
	}
}

func TestPathAndBodyMustAgree(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for path, body := range map[string]string{"/tasks/x:cancel": `{"id":"y"}`, "/tasks/x:subscribe": `{"id":"y"}`} {
		text := b.body(b.send(t.Context(), http.MethodPost, path, body))
		require.Contains(t, text, `"field":"id"`, path)
	}
	for _, body := range []string{"", "{}", "null", " \n", `{"id":"x"}`} {
		text := b.body(b.send(t.Context(), http.MethodPost, "/tasks/x:cancel", body))
		require.Contains(t, text, `"TASK_NOT_FOUND"`, "%q", body)
		text = b.body(b.send(t.Context(), http.MethodPost, "/tasks/x:subscribe", body))
		require.Contains(t, text, `"TASK_NOT_FOUND"`, "%q", body)
	}
	res := b.send(t.Context(), http.MethodPost, "/tasks/x:cancel", "", "Content-Type", "")
	require.Equal(t, http.StatusNotFound, res.StatusCode, "no body needs no content type")
}

func TestBrokenJSONOnREST(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, body := range []string{`{"message":`, `{"":}`, `{} xyz`, `{"message":{"x":`} {
		for _, path := range []string{"/message:send", "/message:stream"} {
			res := b.send(t.Context(), http.MethodPost, path, body)
			require.Equal(t, http.StatusBadRequest, res.StatusCode, body)
			text := b.body(res)
			require.Contains(t, text, `"status":"INVALID_ARGUMENT"`, body)
			require.Contains(t, text, `"PARSE_ERROR"`, body)
		}
	}
	text := b.body(b.send(t.Context(), http.MethodPost, "/message:send", `{"message":{"parts":[{"text":5}]}}`))
	require.Contains(t, text, `"field":"message.parts[0].text"`)
	require.Zero(t, b.store.writes)
}

func TestJSONRPCEnvelopes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, tc := range []struct{ body, id, code string }{
		{`{"jsonrpc":"2.0","id":7,"method":`, "null", "-32700"},
		{``, "null", "-32700"},
		{`{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x"}} xyz`, "null", "-32700"},
		{`{}`, "null", "-32600"},
		{`"hi"`, "null", "-32600"},
		{`null`, "null", "-32600"},
		{`[]`, "null", "-32600"},
		{`[{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x"}}]`, "null", "-32600"},
		{`{"jsonrpc":"2.0","method":"GetTask","params":{"id":"x"}}`, "null", "-32600"},
		{`{"jsonrpc":"2.0","id":{},"method":"GetTask"}`, "null", "-32600"},
		{`{"jsonrpc":"2.0","id":true,"method":"GetTask"}`, "null", "-32600"},
		{`{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 300) + `","method":"GetTask"}`, "null", "-32600"},
		{`{"jsonrpc":"1.0","id":2,"method":"GetTask","params":{"id":"x"}}`, "2", "-32600"},
		{`{"id":2,"method":"GetTask","params":{"id":"x"}}`, "2", "-32600"},
		{`{"jsonrpc":"2.0","id":2,"method":null}`, "2", "-32600"},
		{`{"jsonrpc":"2.0","id":2,"method":""}`, "2", "-32601"},
		{`{"JSONRPC":"2.0","id":2,"method":"GetTask","params":{"id":"x"}}`, "2", "-32600"},
		{`{"jsonrpc":"2.0","id":2}`, "2", "-32600"},
		{`{"jsonrpc":"2.0","id":2,"method":5}`, "2", "-32600"},
		{`{"jsonrpc":"2.0","id":3,"method":"GetTask","params":["x"]}`, "3", "-32602"},
		{`{"jsonrpc":"2.0","id":3,"method":"GetTask","params":"x"}`, "3", "-32602"},
		{`{"jsonrpc":"2.0","id":3,"method":"GetTask"}`, "3", "-32602"},
		{`{"jsonrpc":"2.0","id":3,"method":"GetTask","params":null}`, "3", "-32602"},
		{`{"jsonrpc":"2.0","id":3,"method":"GetTask","params":{"id":"x","historyLength":"y"}}`, "3", "-32602"},
		{`{"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"id":"x"}}`, "3", "-32601"},
		{`{"jsonrpc":"2.0","id":3,"method":"gettask","params":{"id":"x"}}`, "3", "-32601"},
		{`{"jsonrpc":"2.0","id":null,"method":"GetTask","params":{"id":"x"}}`, "null", "-32001"},
		{`{"jsonrpc":"2.0","id":1.50,"method":"GetTask","params":{"id":"x"}}`, "1.50", "-32001"},
		{`{"jsonrpc":"2.0","id":-9007199254740993,"method":"GetTask","params":{"id":"x"}}`, "-9007199254740993", "-32001"},
		{`{"jsonrpc":"2.0","id":"\u0041/\"","method":"GetTask","params":{"id":"x"},"extra":1}`, `"\u0041/\""`, "-32001"},
		{`{"jsonrpc":"2.0","id":3,"method":"GetTask","params":{"task_id":"x","id":"y","history_length":2}}`, "3", "-32001"},
	} {
		for _, path := range []string{"/rpc", "/rpc/", "/agents/echo/rpc"} {
			res := b.send(t.Context(), http.MethodPost, path, tc.body)
			require.Equal(t, http.StatusOK, res.StatusCode)
			require.Equal(t, "application/json", res.Header.Get("Content-Type"))
			text := b.body(res)
			require.True(t, strings.HasPrefix(text, `{"jsonrpc":"2.0","id":`+tc.id+`,"error":{"code":`+tc.code+`,`), "%s: %s", tc.body, text)
			require.Contains(t, text, `"@type":"type.googleapis.com/google.rpc.ErrorInfo"`)
		}
	}
	res := b.send(t.Context(), http.MethodGet, "/rpc", "")
	require.Equal(t, http.StatusMethodNotAllowed, res.StatusCode)
	require.Equal(t, "POST", res.Header.Get("Allow"))
	require.Contains(t, b.body(b.send(t.Context(), http.MethodPost, "/rpc/x", "{}")), "METHOD_NOT_FOUND")
}

func TestARefusedVersionStillHasTheRequestsID(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	text := b.body(b.send(with(t.Context()), http.MethodPost, "/rpc", envelope("GetTask", `{"id":"x"}`)))
	require.Contains(t, text, `"id":"r1","error":{"code":-32009`)
}

func TestEndlessNestingIsRefusedQuickly(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	nested := strings.Repeat("[", 40_000) + strings.Repeat("]", 40_000)
	for name, params := range map[string]string{
		"unknown member": `{"x":` + nested + `}`,
		"data":           `{"message":{"parts":[{"data":` + nested + `}]}}`,
		"many keys":      `{"metadata":{"k":1` + strings.Repeat(`,"k":1`, 10_000) + `}}`,
	} {
		begin := time.Now()
		require.Equal(t, 400, b.send(t.Context(), http.MethodPost, "/message:send", params).StatusCode, name)
		require.Contains(t, b.body(b.send(t.Context(), http.MethodPost, "/rpc", envelope("SendMessage", params))), `"code":-32602`, name)
		require.Less(t, time.Since(begin), 2*time.Second)
	}
}

func TestHTTP2WithoutTLS(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	b.http = &http.Client{Transport: &http.Transport{Protocols: protocols}}
	scripted(b.store)
	res := b.send(t.Context(), http.MethodPost, "/message:stream", say("m1", "hi"), "Accept", sse.MediaType)
	require.Equal(t, 2, res.ProtoMajor)
	got := serverSent(res, func(data []byte) ([]byte, error) { return data, nil }).all(t)
	require.Equal(t, "status COMPLETED", got[len(got)-1])
}

func TestABodyThatEndsEarlyIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.base, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("POST /message:send HTTP/1.1\r\nHost: x\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"message\":"))
	require.NoError(t, err)
	require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	answer := make([]byte, 2000)
	n, err := conn.Read(answer)
	require.NoError(t, err)
	require.Contains(t, string(answer[:n]), "400 Bad Request")
	require.Zero(t, b.store.writes)
}

func TestNumbersInDataSurvive(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	body := strings.Replace(hello, `{"text":"hi"}`, `{"data":{"rev":3,"half":0.5}}`, 1)
	sent := b.body(b.send(t.Context(), http.MethodPost, "/message:send", body))
	require.Contains(t, sent, `"rev":3`)
	require.NotContains(t, sent, `3.0`)
	text := b.body(b.send(t.Context(), http.MethodPost, "/message:send", strings.Replace(body, "0.5", "1e400", 1)))
	require.Contains(t, text, `"field":"message.parts[0].data.half"`)
}

func TestPanicsAreInternalErrors(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t, withAuthenticator(panicking{}))
		switch over.(type) {
		case overGRPC:
			require.ErrorContains(t, b.grpc.Invoke(outgoing(t.Context()), "/lf.a2a.v1.A2AService/GetTask", request("GetTask", `{"id":"`+task.NewID()+`"}`), messages["GetTask"][1]), "internal error")
		case overREST:
			res := b.send(t.Context(), http.MethodGet, "/tasks/x", "")
			require.Equal(t, http.StatusInternalServerError, res.StatusCode)
			require.NotContains(t, b.body(res), "secret")
		case overJSONRPC:
			res := b.send(t.Context(), http.MethodPost, "/rpc", envelope("GetTask", `{}`))
			require.Equal(t, http.StatusInternalServerError, res.StatusCode)
			require.NotContains(t, b.body(res), "secret")
		}
	})
}
