package gateway_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/auth"
	"github.com/errandhq/errand/pkg/task"
)

const hello = `{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"hi"}]},"configuration":{"returnImmediately":true}}`

// to returns a send that names a routing id.
func to(tenant string) string {
	return strings.Replace(hello, `{"message"`, `{"tenant":"`+tenant+`","message"`, 1)
}

func TestOnlyVersion1IsServed(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		for version, served := range map[string]bool{
			"1.0": true, "1.0.7": true, "1": true,
			"": false, "0.3": false, "0.3.0": false, "1.1": false, "2.0": false, "99.0": false, "abc": false, "1.0.x": false, "1.0x": false,
		} {
			got := over.call(with(t.Context(), "A2A-Version", version), b, "GetTask", `{"id":"nope"}`)
			want := a2aerr.ReasonVersionNotSupported
			if served {
				want = a2aerr.ReasonTaskNotFound
			}
			require.Equal(t, want, got.failed.reason, version)
		}
		require.Equal(t, a2aerr.ReasonVersionNotSupported, over.call(with(t.Context()), b, "GetTask", `{"id":"nope"}`).failed.reason)
	})
}

func TestTheVersionMayStandInTheQuery(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	none := with(t.Context())
	require.Equal(t, http.StatusOK, b.send(none, "GET", "/tasks?A2A-Version=1.0", "").StatusCode)
	require.Equal(t, http.StatusOK, b.send(none, "GET", "/tasks?a2a-version=1.0", "").StatusCode, "names have no case")
	require.Contains(t, b.body(b.send(none, "POST", "/rpc?A2A-Version=1.0", envelope("ListTasks", "{}"))), `"result"`)
	require.Equal(t, http.StatusBadRequest, b.send(with(t.Context(), "A2A-Version", "0.3"), "GET", "/tasks?A2A-Version=1.0", "").StatusCode, "the header wins")
}

func TestAMissingVersionIsTheDefaultOne(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t, withAgents("default_version: \"1.0\"\n"+defaultAgents))
		require.Equal(t, a2aerr.ReasonTaskNotFound, over.call(with(t.Context()), b, "GetTask", `{"id":"nope"}`).failed.reason)
		require.Equal(t, a2aerr.ReasonVersionNotSupported,
			over.call(with(t.Context(), "A2A-Version", "0.3"), b, "GetTask", `{"id":"nope"}`).failed.reason)
	})
}

func TestRequiredExtensionsMustBeRequested(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		strict := to("self.strict")
		for name, pairs := range map[string][]string{
			"none": {}, "another": {"A2A-Extensions", "https://x.test/b"}, "old header": {"X-A2A-Extensions", "https://x.test/a"},
		} {
			got := over.call(with(t.Context(), append(pairs, "A2A-Version", "1.0")...), b, "SendMessage", strict)
			require.Equal(t, a2aerr.ReasonExtensionSupportRequired, got.failed.reason, name)
		}
		require.Zero(t, b.store.writes, "nothing was stored")
		for name, pairs := range map[string][]string{
			"padded list":   {"a2a-extensions", " https://x.test/unknown , https://x.test/a"},
			"several lines": {"A2A-Extensions", "https://x.test/unknown", "A2A-Extensions", "https://x.test/a"},
		} {
			got := over.call(with(t.Context(), append(pairs, "A2A-Version", "1.0")...), b, "SendMessage", strict)
			require.Nil(t, got.failed, name)
		}
	})
}

func TestActiveExtensionsAreNamedInTheAnswer(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const wanted = "https://x.test/unknown, https://x.test/b, https://x.test/a"
	for name, over := range map[string]binding{"HTTP+JSON": overREST{}, "JSON-RPC": overJSONRPC{}} {
		got := over.call(with(t.Context(), "A2A-Version", "1.0", "A2A-Extensions", wanted), b, "SendMessage", to("self.strict"))
		require.Nil(t, got.failed)
		require.Equal(t, "https://x.test/a, https://x.test/b", got.header.Get("A2A-Extensions"), name)
	}
	var header metadata.MD
	ctx := metadata.AppendToOutgoingContext(t.Context(), "a2a-version", "1.0", "a2a-extensions", wanted)
	require.NoError(t, b.grpc.Invoke(ctx, "/lf.a2a.v1.A2AService/SendMessage", request("SendMessage", to("self.strict")), messages["SendMessage"][1], grpc.Header(&header)))
	require.Equal(t, []string{"https://x.test/a, https://x.test/b"}, header.Get("a2a-extensions"))
}

func TestRoutingIDsNameTenantAndAgent(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		for routingID, agent := range map[string]string{
			"": "echo", "default": "echo", "default.busy": "busy", "self.busy": "busy", "self.echo": "echo",
		} {
			message := strings.Replace(to(routingID), `"m1"`, `"`+task.NewID()+`"`, 1)
			got := over.call(t.Context(), b, "SendMessage", message).task(t)
			require.Equal(t, agent, b.store.tasks[got.GetId()].agent, routingID)
			require.Equal(t, "default", b.store.tasks[got.GetId()].tenant, routingID)
		}
	})
}

func TestForeignAndUnknownRoutingIDsLookTheSame(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		mine := over.call(t.Context(), b, "SendMessage", hello).task(t)
		writes := b.store.writes
		var answers []failed
		for _, routingID := range []string{"other", "other.echo", "self.nobody", "Default", " default", "default ", "default.echo.echo", "default.", ".echo"} {
			got := over.call(t.Context(), b, "SendMessage", to(routingID))
			require.NotNil(t, got.failed, routingID)
			answers = append(answers, *got.failed)
			got = over.call(t.Context(), b, "GetTask", `{"tenant":"`+routingID+`","id":"`+mine.GetId()+`"}`)
			require.Equal(t, a2aerr.ReasonTaskNotFound, got.failed.reason, routingID)
		}
		for _, a := range answers {
			require.Equal(t, answers[0], a)
		}
		require.Equal(t, a2aerr.ReasonInvalidParams, answers[0].reason)
		require.Equal(t, "tenant", answers[0].field)
		require.Equal(t, writes, b.store.writes)
		other := over.call(t.Context(), b, "GetTask", `{"tenant":"self.busy","id":"`+mine.GetId()+`"}`)
		require.Equal(t, a2aerr.ReasonTaskNotFound, other.failed.reason, "another agent's task")
	})
}

func TestTwoPlacesMustNotNameDifferentAgents(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for path, body := range map[string]string{
		"/agents/busy/rpc":                      envelope("SendMessage", to("self.echo")),
		"/agents/busy/message:send":             to("default.echo"),
		"/agents/busy/self.echo/message:send":   hello,
		"/agents/busy/default.echo/tasks":       "",
		"/self.busy/message:send":               to("self.echo"),
		"/agents/busy/self.busy/message:stream": to("self.echo"),
	} {
		method := http.MethodPost
		if body == "" {
			method = http.MethodGet
		}
		text := b.body(b.send(t.Context(), method, path, body))
		require.Contains(t, text, `"field":"tenant"`, path)
		require.Contains(t, text, `"INVALID_PARAMS"`, path)
	}
	require.Zero(t, b.store.writes)
	for path, body := range map[string]string{
		"/agents/busy/rpc":                    envelope("SendMessage", to("self.busy")),
		"/agents/busy/message:send":           hello,
		"/agents/busy/self.busy/message:send": hello,
		"/self.busy/message:send":             to("self.busy"),
	} {
		text := b.body(b.send(t.Context(), http.MethodPost, path, body))
		require.Contains(t, text, `"task":`, path)
	}
	require.Len(t, b.store.tasks, 1, "all four were the same message to the same agent")
}

func TestChecksComeInOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	noVersion := with(t.Context())
	broken := `{"message":`
	post := func(ctx context.Context, path, body string, headers ...string) string {
		return b.body(b.send(ctx, http.MethodPost, path, body, headers...))
	}
	require.Contains(t, post(noVersion, "/message:send", broken, "Content-Type", "text/plain"), `"code":415`, "content type before version")
	require.Contains(t, post(noVersion, "/message:send", broken), "VERSION_NOT_SUPPORTED", "version before parsing")
	require.Contains(t, post(noVersion, "/rpc", broken), "VERSION_NOT_SUPPORTED")
	require.Contains(t, post(t.Context(), "/agents/strict/message:send", broken), "EXTENSION_SUPPORT_REQUIRED", "extensions before parsing")
	require.Contains(t, post(t.Context(), "/agents/strict/rpc", envelope("SendMessage", `{"message":5}`)), "EXTENSION_SUPPORT_REQUIRED")
	require.Contains(t, post(t.Context(), "/agents/quiet/message:stream", `{}`), "UNSUPPORTED_OPERATION", "capability before validation")
	require.Contains(t, post(t.Context(), "/message:send", `{"message":{"taskId":"nope"}}`), `"INVALID_PARAMS"`, "validation before existence")
}

func TestTheOlderErrorProfileIsPerAgent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	push := func(agent string) string {
		return overGRPC{}.call(t.Context(), b, "GetTaskPushNotificationConfig", `{"tenant":"self.`+agent+`","taskId":"t","id":"c"}`).failed.code
	}
	// a2aerr keeps its own table, so the code on the wire is looked at.
	_, err := grpcCode(t, b, "GetTaskPushNotificationConfig", `{"tenant":"self.repeat","taskId":"t","id":"c"}`)
	require.ErrorContains(t, err, "Unimplemented")
	require.Equal(t, "FailedPrecondition", push("echo"))
}

// The version is checked before the routing id, which says whose profile counts.
func TestTheOlderErrorProfileCountsForVersionsToo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	old := with(t.Context(), "A2A-Version", "0.3")
	for agent, code := range map[string]string{"repeat": "Unimplemented", "echo": "FailedPrecondition", "nobody": "FailedPrecondition"} {
		require.Equal(t, code, overGRPC{}.call(old, b, "GetTask", `{"tenant":"self.`+agent+`","id":"t"}`).failed.code)
		_, failed := overGRPC{}.stream(old, b, "SubscribeToTask", `{"tenant":"self.`+agent+`","id":"t"}`)
		require.Equal(t, code, failed.code)
	}
}

func TestSelfAloneIsNoRoutingID(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		require.Equal(t, "tenant", over.call(t.Context(), b, "SendMessage", to("self")).failed.field)
		require.Nil(t, over.call(t.Context(), b, "SendMessage", to("self.echo")).failed)
	})
}

func grpcCode(t *testing.T, b *bench, operation, params string) (string, error) {
	t.Helper()
	err := b.grpc.Invoke(outgoing(t.Context()), "/lf.a2a.v1.A2AService/"+operation, request(operation, params), messages[operation][1])
	return "", err
}

// gatekeeper knows one credential.
type gatekeeper struct{}

func (gatekeeper) Authenticate(_ context.Context, m auth.Metadata) (auth.Identity, error) {
	for _, v := range m.Values("Authorization") {
		if name, ok := strings.CutPrefix(v, "Bearer "); ok {
			return auth.Identity{Subject: name, Tenant: "t1"}, nil
		}
	}
	return auth.Identity{}, a2aerr.Unauthenticated("credentials are missing")
}

func TestSendersWithoutCredentialsAreRefusedFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t, withAuthenticator(gatekeeper{}))
	none := with(t.Context())
	res := b.send(none, http.MethodPost, "/message:send", "{")
	require.Equal(t, http.StatusUnauthorized, res.StatusCode)
	require.Equal(t, "Bearer", res.Header.Get("WWW-Authenticate"))
	res = b.send(none, http.MethodPost, "/rpc", "{")
	require.Equal(t, http.StatusUnauthorized, res.StatusCode)
	require.Contains(t, b.body(res), `"id":null,"error":{"code":-31401`)
	require.Equal(t, "Unauthenticated", overGRPC{}.call(none, b, "GetTask", `{"id":"t"}`).failed.code)
	require.Equal(t, http.StatusOK, b.send(none, http.MethodGet, "/.well-known/agent-card.json", "").StatusCode, "cards are public")
}

func TestTasksOfOthersDoNotExist(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t, withAuthenticator(gatekeeper{}))
		as := func(name string) context.Context {
			return with(t.Context(), "A2A-Version", "1.0", "Authorization", "Bearer "+name)
		}
		id := over.call(as("alice"), b, "SendMessage", hello).task(t).GetId()
		writes := b.store.writes
		random := task.NewID()
		for operation, params := range map[string]string{
			"GetTask": `{"id":"ID"}`, "CancelTask": `{"id":"ID"}`,
			"SendMessage": `{"message":{"messageId":"m2","taskId":"ID","role":"ROLE_USER","parts":[{"text":"x"}]}}`,
		} {
			foreign := over.call(as("dave"), b, operation, strings.ReplaceAll(params, "ID", id))
			unknown := over.call(as("dave"), b, operation, strings.ReplaceAll(params, "ID", random))
			require.Equal(t, a2aerr.ReasonTaskNotFound, foreign.failed.reason, operation)
			require.Equal(t, unknown.failed, foreign.failed, operation)
		}
		_, refused := over.stream(as("dave"), b, "SubscribeToTask", `{"id":"`+id+`"}`)
		require.Equal(t, a2aerr.ReasonTaskNotFound, refused.reason)
		require.Equal(t, int64(1), b.store.tasks[id].version)
		require.LessOrEqual(t, b.store.writes, writes+2, "the store refused, nothing else wrote")
		require.NotContains(t, over.call(as("dave"), b, "ListTasks", `{}`).result, id)
		require.Contains(t, over.call(as("alice"), b, "ListTasks", `{}`).result, id)
	})
}
