package conformance_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/services/e2e/internal/harness"
)

func rpcSend(id, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"SendMessage","params":{"message":`+
		`{"messageId":%q,"role":"ROLE_USER","parts":[{"text":%q}]}}}`, id, uuid.NewString(), text)
}

// JSONRPC-FMT-001, JSONRPC-FMT-002: the id comes back as it was sent.
func TestJSONRPCEchoesTheID(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
		for _, id := range []string{`7`, `-1`, `"7"`, `"a b"`, `"ü\n"`, `null`, `9007199254740993`, `1.5`} {
			answer := rpc(t, cluster, rpcSend(id, "echo"))
			require.Nil(t, answer.Error)
			require.JSONEq(t, id, string(answer.ID))
			if id[0] != '"' {
				require.Equal(t, id, string(answer.ID), "digits stay")
			}
			refused := rpc(t, cluster, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"GetTask","params":{"id":"x"}}`, id))
			require.Equal(t, -32001, refused.Error.Code)
			require.JSONEq(t, id, string(refused.ID))
		}
	})
}

// JSONRPC-ERR-001, A2A §9.5: what is no JSON, and what is no request.
func TestJSONRPCTellsBrokenJSONFromAWrongRequest(t *testing.T) {
	t.Parallel()
	const get = `"method":"GetTask","params":{"id":"x"}`
	for body, want := range map[string]struct {
		code int
		id   string
	}{
		`{"jsonrpc":"2.0","id":7,"method":`: {-32700, `null`},
		`{`:                                 {-32700, `null`},
		`nonsense`:                          {-32700, `null`},
		rpcSend("7", "echo") + ` xyz`:       {-32700, `null`},
		rpcSend("7", "echo") + rpcSend("8", "echo"): {-32700, `null`},
		`{"":}`:                                  {-32700, `null`},
		`{}`:                                     {-32600, `null`},
		`"hi"`:                                   {-32600, `null`},
		`42`:                                     {-32600, `null`},
		`null`:                                   {-32600, `null`},
		`[]`:                                     {-32600, `null`},
		`[{"jsonrpc":"2.0","id":1,` + get + `}]`: {-32600, `null`},
		`{"jsonrpc":"2.0",` + get + `}`:          {-32600, `null`},
		`{"jsonrpc":"1.0","id":2,` + get + `}`:   {-32600, `2`},
		`{"jsonrpc":2.0,"id":2,` + get + `}`:     {-32600, `2`},
		`{"id":2,` + get + `}`:                   {-32600, `2`},
		`{"jsonrpc":"2.0","id":{},` + get + `}`:  {-32600, `null`},
		`{"jsonrpc":"2.0","id":[1],` + get + `}`: {-32600, `null`},
		`{"jsonrpc":"2.0","id":true,` + get + `}`:                                               {-32600, `null`},
		`{"jsonrpc":"2.0","id":2,"params":{}}`:                                                  {-32600, `2`},
		`{"jsonrpc":"2.0","id":2,"method":5}`:                                                   {-32600, `2`},
		`{"jsonrpc":"2.0","id":2,"method":null}`:                                                {-32600, `2`},
		`{"jsonrpc":"2.0","id":2,"method":"Nope"}`:                                              {-32601, `2`},
		`{"jsonrpc":"2.0","id":2,"method":"getTask"}`:                                           {-32601, `2`},
		`{"jsonrpc":"2.0","id":2,"method":"tasks/get"}`:                                         {-32601, `2`},
		`{"jsonrpc":"2.0","id":2,"method":""}`:                                                  {-32601, `2`},
		`{"jsonrpc":"2.0","id":3,"method":"GetTask","params":["x"]}`:                            {-32602, `3`},
		`{"jsonrpc":"2.0","id":3,"method":"GetTask","params":"x"}`:                              {-32602, `3`},
		`{"jsonrpc":"2.0","id":3,"method":"GetTask","params":{"id":5}}`:                         {-32602, `3`},
		`{"jsonrpc":"2.0","id":3,"method":"GetTask"}`:                                           {-32602, `3`},
		`{"jsonrpc":"2.0","id":3,"method":"SendMessage","params":{}}`:                           {-32602, `3`},
		`{"jsonrpc":"2.0","id":3,"method":"SendMessage","params":{"message":{"messageId":{}}}}`: {-32602, `3`},
	} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
				answer := rpc(t, cluster, body)
				require.NotNil(t, answer.Error)
				require.Equal(t, want.code, answer.Error.Code, answer.Error.Message)
				require.Equal(t, want.id, string(answer.ID))
				requireNoInsides(t, answer.Error.Message)
			})
		})
	}
}

// JSONRPC-SVC-001.
func TestJSONRPCKnowsTheElevenMethods(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
		for _, method := range []string{
			"SendMessage", "SendStreamingMessage", "GetTask", "ListTasks", "CancelTask", "SubscribeToTask",
			"CreateTaskPushNotificationConfig", "GetTaskPushNotificationConfig", "ListTaskPushNotificationConfigs",
			"DeleteTaskPushNotificationConfig", "GetExtendedAgentCard",
		} {
			answer := rpc(t, cluster, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{}}`, method))
			if answer.Error != nil {
				require.NotEqual(t, -32601, answer.Error.Code, method)
			}
		}
		absent := rpc(t, cluster, `{"jsonrpc":"2.0","id":1,"method":"GetExtendedAgentCard"}`)
		require.Equal(t, -32004, absent.Error.Code)
	})
}

// The endpoint answers with and without a slash at its end, and never redirects.
func TestJSONRPCIsServedWithAndWithoutASlash(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
		for _, path := range []string{"/rpc", "/rpc/", "/agents/scripted/rpc", "/agents/scripted/rpc/"} {
			got := exchange{method: http.MethodPost, path: path, body: rpcSend("1", "echo")}.do(t, cluster)
			require.Nil(t, parseRPC(t, got).Error, path)
			for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
				got := exchange{method: method, path: path}.do(t, cluster)
				require.Equal(t, http.StatusMethodNotAllowed, got.Status, "%s %s", method, path)
			}
		}
	})
}

// JSONRPC-FMT-002: the content type is decided before the body is read.
func TestJSONRPCTakesJSONOnly(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
		post := func(contentType, body string) (int, rpcAnswer) {
			x := exchange{method: http.MethodPost, path: "/rpc", body: body, header: map[string]string{"Content-Type": contentType}}
			got := x.do(t, cluster)
			status := got.Status
			got.Status = http.StatusOK
			return status, parseRPC(t, got)
		}
		for _, good := range []string{"application/json", "application/json; charset=utf-8", "Application/JSON"} {
			status, answer := post(good, rpcSend("1", "echo"))
			require.Equal(t, http.StatusOK, status)
			require.Nil(t, answer.Error, good)
		}
		for _, bad := range []string{"text/plain", "application/xml", "application/jsonx", ""} {
			for _, body := range []string{rpcSend("1", "echo"), "<no json>"} {
				status, answer := post(bad, body)
				require.Equal(t, http.StatusUnsupportedMediaType, status, bad)
				require.Equal(t, -32005, answer.Error.Code)
			}
		}
	})
}
