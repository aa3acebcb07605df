package conformance_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/harness"
)

// exchange sends any HTTP request to a cluster.
type exchange struct {
	method, path, body string
	// Of A2A-Version and Content-Type, which stand by themselves; an empty value
	// leaves the header out.
	header map[string]string
}

func (x exchange) do(t *testing.T, cluster *harness.Cluster) *binding.Response {
	t.Helper()
	header := http.Header{}
	header.Set("A2A-Version", binding.Version)
	if x.body != "" {
		header.Set("Content-Type", "application/json")
	}
	for name, value := range x.header {
		header.Set(name, value)
		if value == "" {
			header.Del(name)
		}
	}
	got, err := binding.Do(within(t), cluster.Client.HTTP, x.method, cluster.Client.URL+x.path, header, []byte(x.body))
	require.NoError(t, err)
	return got
}

// rpcAnswer is a JSON-RPC response whose id may be anything.
type rpcAnswer struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Code    int               `json:"code"`
		Message string            `json:"message"`
		Data    []json.RawMessage `json:"data"`
	} `json:"error"`
}

// rpc posts a body to the JSON-RPC endpoint and wants a JSON-RPC response.
func rpc(t *testing.T, cluster *harness.Cluster, body string) rpcAnswer {
	t.Helper()
	got := exchange{method: http.MethodPost, path: "/rpc", body: body}.do(t, cluster)
	return parseRPC(t, got)
}

func parseRPC(t *testing.T, got *binding.Response) rpcAnswer {
	t.Helper()
	require.Equal(t, http.StatusOK, got.Status, "%s", got.Body)
	require.Equal(t, "application/json", got.Header.Get("Content-Type"))
	var answer rpcAnswer
	require.NoError(t, json.Unmarshal(got.Body, &answer), "%s", got.Body)
	require.Equal(t, "2.0", answer.Version)
	return answer
}

// restError is the body of a refused HTTP+JSON call.
type restError struct {
	Error struct {
		Code    int              `json:"code"`
		Status  string           `json:"status"`
		Message string           `json:"message"`
		Details []map[string]any `json:"details"`
	} `json:"error"`
}

// refusedREST wants a google.rpc.Status body with an ErrorInfo in it.
func refusedREST(t *testing.T, got *binding.Response, status int, name, reason string) {
	t.Helper()
	require.Equal(t, status, got.Status, "%s", got.Body)
	require.Contains(t, []string{"application/json", "application/a2a+json"}, got.Header.Get("Content-Type"))
	var body restError
	require.NoError(t, json.Unmarshal(got.Body, &body), "%s", got.Body)
	require.Equal(t, status, body.Error.Code)
	require.Equal(t, name, body.Error.Status)
	require.NotEmpty(t, body.Error.Message)
	require.NotEmpty(t, body.Error.Details, "%s", got.Body)
	require.Equal(t, "type.googleapis.com/google.rpc.ErrorInfo", body.Error.Details[0]["@type"])
	require.Equal(t, reason, body.Error.Details[0]["reason"])
	require.Equal(t, "a2a-protocol.org", body.Error.Details[0]["domain"])
}

// listOf splits a header that is a comma-separated list.
func listOf(h http.Header, name string) []string {
	var all []string
	for _, line := range h.Values(name) {
		for entry := range strings.SplitSeq(line, ",") {
			if entry = strings.TrimSpace(entry); entry != "" {
				all = append(all, entry)
			}
		}
	}
	return all
}
