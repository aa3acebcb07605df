package conformance_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/services/e2e/internal/harness"
)

func restSend(text string) string {
	return fmt.Sprintf(`{"message":{"messageId":%q,"role":"ROLE_USER","parts":[{"text":%q}]}}`, uuid.NewString(), text)
}

// HTTP_JSON-SVC-001, A2A §11.1: both JSON types are taken, and the sender is
// answered in the type that it understands.
func TestRESTNegotiatesTheTwoJSONTypes(t *testing.T) {
	t.Parallel()
	const plain, own = "application/json", "application/a2a+json"
	for name, tc := range map[string]struct{ contentType, accept, want string }{
		"json":                    {plain, "", plain},
		"json, anything":          {plain, "*/*", plain},
		"json with charset":       {"application/json; charset=utf-8", "", plain},
		"a2a+json":                {own, "", own},
		"a2a+json, anything":      {own + "; charset=utf-8", "*/*", own},
		"a2a+json, wants json":    {own, plain, plain},
		"json, wants a2a+json":    {plain, own, own},
		"json, names both":        {plain, own + ", " + plain, own},
		"json, among others":      {plain, "text/html, application/a2a+json;q=0.9", own},
		"upper case":              {"APPLICATION/A2A+JSON", "", own},
		"nothing that we have":    {plain, "text/html", plain},
		"events, but no stream":   {plain, "text/event-stream", plain},
		"weighted":                {plain, "application/json, application/a2a+json;q=0.1", own},
		"a2a+json with a profile": {own + "; profile=x", own + "; profile=x", own},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
				header := map[string]string{"Content-Type": tc.contentType, "Accept": tc.accept}
				got := exchange{http.MethodPost, "/message:send", restSend("echo"), header}.do(t, cluster)
				require.Equal(t, http.StatusOK, got.Status, "%s", got.Body)
				require.Equal(t, tc.want, got.Header.Get("Content-Type"))

				refused := exchange{http.MethodPost, "/message:send", `{"message":{}}`, header}.do(t, cluster)
				refusedREST(t, refused, 400, "INVALID_ARGUMENT", "INVALID_PARAMS")
				require.Equal(t, tc.want, refused.Header.Get("Content-Type"))
			})
		})
	}
}

// HTTP_JSON-STATUS-001: a body that is no JSON type is 415, before it is read.
func TestRESTRefusesOtherMediaTypes(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
		for _, bad := range []string{"text/plain", "application/xml", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"} {
			for _, path := range []string{"/message:send", "/message:stream"} {
				got := exchange{http.MethodPost, path, restSend("echo"), map[string]string{"Content-Type": bad}}.do(t, cluster)
				refusedREST(t, got, 415, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED")
			}
		}
		// A GET has no body whose type could matter.
		got := exchange{http.MethodGet, "/tasks?pageSize=1", "", map[string]string{"Content-Type": "text/plain"}}.do(t, cluster)
		require.Equal(t, http.StatusOK, got.Status)
	})
}

// HTTP_JSON-ERR-001, A2A §11.6: a body that is broken is the sender's fault.
func TestRESTTellsBrokenJSON(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
		for _, body := range []string{`{"message":`, `nonsense`, `{"":}`, restSend("echo") + ` xyz`, `{"message":{"x":`} {
			for _, path := range []string{"/message:send", "/message:stream"} {
				got := exchange{method: http.MethodPost, path: path, body: body}.do(t, cluster)
				refusedREST(t, got, 400, "INVALID_ARGUMENT", "PARSE_ERROR")
			}
		}
		for _, body := range []string{"{\"message\":{\"contextId\":\"\xff\"}}", `[]`, `"hi"`, `42`, `{"message":"x"}`, `{"message":[]}`, `{}`, `null`} {
			got := exchange{method: http.MethodPost, path: "/message:send", body: body}.do(t, cluster)
			refusedREST(t, got, 400, "INVALID_ARGUMENT", "INVALID_PARAMS")
		}
	})
}

// HTTP_JSON-URL-001, A2A §11.6: an id is one segment of the path, whatever
// characters it has; nothing is answered in HTML or plain text.
func TestRESTTakesAnyIDInAPath(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
		for _, path := range []string{
			"/tasks/user:123", "/tasks/a%3Acancel", "/tasks/a%3asubscribe", "/tasks/a%2Fb", "/tasks/a%2F..%2Fb", "/tasks/%E2%82%AC",
			"/tasks/a%20b", "/tasks/a+b", "/tasks/%2525", "/tasks/x:y:z", "/tasks/:", "/tasks/.",
			"/default/tasks/user:123", "/agents/tck/tasks/a%3Acancel", "/tasks/tasks", "/tasks/" + uuid.NewString(),
		} {
			got := exchange{method: http.MethodGet, path: path}.do(t, cluster)
			refusedREST(t, got, 404, "NOT_FOUND", "TASK_NOT_FOUND")
		}
		for _, path := range []string{"/tasks/a%3Ab:cancel", "/tasks/a%2Fb:cancel", "/tasks/a:b:cancel", "/tasks/x:cancel"} {
			got := exchange{method: http.MethodPost, path: path}.do(t, cluster)
			refusedREST(t, got, 404, "NOT_FOUND", "TASK_NOT_FOUND")
		}
		push := exchange{method: http.MethodGet, path: "/tasks/x/pushNotificationConfigs/c:1"}.do(t, cluster)
		refusedREST(t, push, 400, "FAILED_PRECONDITION", "PUSH_NOTIFICATION_NOT_SUPPORTED")
	})
}

// HTTP_JSON-URL-002.
func TestRESTHasNoOtherRoutes(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
		for _, x := range []exchange{
			{method: http.MethodPost, path: "/tasks/x:explode"}, {method: http.MethodPost, path: "/tasks/x"},
			{method: http.MethodDelete, path: "/tasks/x"}, {method: http.MethodPut, path: "/tasks"},
			{method: http.MethodGet, path: "/message:send"}, {method: http.MethodPut, path: "/message:send", body: "{}"},
			{method: http.MethodPost, path: "/extendedAgentCard"}, {method: http.MethodGet, path: "/tasks/x:cancel"},
			{method: http.MethodGet, path: "/nope"}, {method: http.MethodGet, path: "/a/b/c/d/e"}, {method: http.MethodGet, path: "/message:explode"},
			{method: http.MethodGet, path: "/agents/nobody/tasks"}, {method: http.MethodPost, path: "/agents/nobody/rpc", body: "{}"},
			{method: http.MethodGet, path: "/agents/"}, {method: http.MethodGet, path: "/%2e%2e/tasks/x/y"},
		} {
			if x.method == http.MethodGet && x.path == "/tasks/x:cancel" {
				continue // an id with a colon, see above
			}
			got := x.do(t, cluster)
			require.Contains(t, []int{404, 405}, got.Status, "%s %s: %s", x.method, x.path, got.Body)
			refusedREST(t, got, got.Status, "UNIMPLEMENTED", "METHOD_NOT_FOUND")
			if got.Status == http.StatusMethodNotAllowed {
				require.NotEmpty(t, got.Header.Get("Allow"), "%s %s", x.method, x.path)
			}
		}
	})
}

// A cancel needs no body: the official clients send none, an empty one, or one
// of {} or the request.
func TestRESTCancelTakesAnyBody(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
		c := callers(t, cluster, defaultAgent)[1]
		for _, x := range []exchange{
			{}, {header: map[string]string{"Content-Type": "application/json"}}, {body: `{}`}, {body: `{"metadata":{"a":1}}`},
			{body: `{"id":"%s"}`}, {body: `{}`, header: map[string]string{"Content-Type": "application/a2a+json"}},
		} {
			sent := c.send(say("sleep 30", immediately))
			x.method, x.path = http.MethodPost, "/tasks/"+sent.GetId()+":cancel"
			if x.body == `{"id":"%s"}` {
				x.body = fmt.Sprintf(x.body, sent.GetId())
			}
			got := x.do(t, cluster)
			require.Equal(t, http.StatusOK, got.Status, "%s", got.Body)
			require.Contains(t, string(got.Body), "TASK_STATE_CANCELED")
		}
		sent := c.send(say("ask"))
		got := exchange{method: http.MethodPost, path: "/tasks/" + sent.GetId() + ":cancel", body: `{"id":"another"}`}.do(t, cluster)
		refusedREST(t, got, 400, "INVALID_ARGUMENT", "INVALID_PARAMS")
		require.Equal(t, inputRequired, state(c.get(sent.GetId())))
	})
}

// HTTP_JSON-QP-001: names are lowerCamelCase; unknown ones are ignored.
func TestRESTReadsQueryParameters(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
		c := callers(t, cluster, defaultAgent)[1]
		sent := c.send(say("echo"))
		base := "/tasks?contextId=" + sent.GetContextId()
		for _, query := range []string{
			"", "&unknown=1", "&status=TASK_STATE_COMPLETED", "&includeArtifacts=true", "&pageSize=1", "&historyLength=0",
			"&statusTimestampAfter=2020-01-01T00:00:00Z", "&lastUpdatedAfter=2020-01-01T00:00:00Z", "&pageToken=", "&page_size=5",
		} {
			got := exchange{method: http.MethodGet, path: base + query}.do(t, cluster)
			require.Equal(t, http.StatusOK, got.Status, "%s: %s", query, got.Body)
			require.Contains(t, string(got.Body), sent.GetId(), query)
		}
		for _, query := range []string{"&status=TASK_STATE_FAILED", "&lastUpdatedAfter=2999-01-01T00:00:00Z", "&statusTimestampAfter=2999-01-01T00:00:00Z"} {
			got := exchange{method: http.MethodGet, path: base + query}.do(t, cluster)
			require.Equal(t, http.StatusOK, got.Status, "%s: %s", query, got.Body)
			require.NotContains(t, string(got.Body), sent.GetId(), query)
		}
		for _, query := range []string{
			"&pageSize=x", "&pageSize=0", "&pageSize=101", "&includeArtifacts=maybe", "&status=COMPLETED", "&statusTimestampAfter=yesterday",
			"&historyLength=-1", "&historyLength=1.5", "&historyLength=2147483648", "&pageToken=abc",
		} {
			got := exchange{method: http.MethodGet, path: base + query}.do(t, cluster)
			refusedREST(t, got, 400, "INVALID_ARGUMENT", "INVALID_PARAMS")
		}
	})
}
