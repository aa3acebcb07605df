package gateway_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/errandhq/errand/services/gateway"
)

const cardPath = "/.well-known/agent-card.json"

func public(c *gateway.Config) {
	c.PublicURL, c.PublicGRPC = "https://a2a.test/base/", "a2a.test:443"
}

func (b *bench) card(path string) *a2apb.AgentCard {
	b.t.Helper()
	res := b.send(with(b.t.Context()), http.MethodGet, path, "", "X-Forwarded-Host", "evil.test", "X-Forwarded-Proto", "ftp")
	require.Equal(b.t, http.StatusOK, res.StatusCode, path)
	require.Equal(b.t, "application/json", res.Header.Get("Content-Type"))
	c := &a2apb.AgentCard{}
	require.NoError(b.t, protojson.Unmarshal([]byte(b.body(res)), c))
	return c
}

func TestCardsNameTheirInterfacesFromConfiguration(t *testing.T) {
	t.Parallel()
	b := newBench(t, public)
	for path, want := range map[string][2]string{
		cardPath:                             {"https://a2a.test/base", ""},
		"/rpc" + cardPath:                    {"https://a2a.test/base", ""},
		"/agents/echo" + cardPath:            {"https://a2a.test/base/agents/echo", "self.echo"},
		"/agents/strict" + cardPath:          {"https://a2a.test/base/agents/strict", "self.strict"},
		"/agents/strict" + "/rpc" + cardPath: {"https://a2a.test/base/agents/strict", "self.strict"},
	} {
		got := b.card(path).GetSupportedInterfaces()
		require.Len(t, got, 3, path)
		for _, i := range got {
			require.Equal(t, "1.0", i.GetProtocolVersion())
		}
		require.Equal(t, []string{"JSONRPC", want[0] + "/rpc", ""}, []string{got[0].GetProtocolBinding(), got[0].GetUrl(), got[0].GetTenant()}, path)
		require.Equal(t, []string{"HTTP+JSON", want[0], ""}, []string{got[1].GetProtocolBinding(), got[1].GetUrl(), got[1].GetTenant()}, path)
		require.Equal(t, []string{"GRPC", "a2a.test:443", want[1]}, []string{got[2].GetProtocolBinding(), got[2].GetUrl(), got[2].GetTenant()}, path)
	}
}

func TestWithoutConfigurationCardsAreForTheSameMachine(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	got := b.card(cardPath).GetSupportedInterfaces()
	require.Equal(t, strings.Replace(b.base, "127.0.0.1", "localhost", 1)+"/rpc", got[0].GetUrl())
	require.Equal(t, strings.Replace(b.gateway.GRPCAddr(), "127.0.0.1", "localhost", 1), got[2].GetUrl())
}

func TestCardsSayWhatIsOffered(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := b.card(cardPath)
	require.True(t, c.GetCapabilities().GetStreaming())
	require.NotNil(t, c.GetCapabilities().PushNotifications)
	require.False(t, c.GetCapabilities().GetPushNotifications())
	require.False(t, b.card("/agents/quiet"+cardPath).GetCapabilities().GetStreaming())
	require.Len(t, b.card("/agents/strict"+cardPath).GetCapabilities().GetExtensions(), 2)
	require.Equal(t, "Echoes. Answers with a Task.", c.GetSkills()[0].GetDescription())
	require.Equal(t, "Echoes. Answers with a Message.", b.card("/agents/direct" + cardPath).GetSkills()[0].GetDescription())
	require.Equal(t, "Echoes. Answers with a Message or a Task.", b.card("/agents/either" + cardPath).GetSkills()[0].GetDescription())
}

func TestHybridSkillsSayWhyTheyMakeTasks(t *testing.T) {
	t.Parallel()
	b := newBench(t, withAgents(strings.Replace(defaultAgents, "task_when: []", "task_when: [side_effect, human_input]", 1)))
	require.Equal(t, "Echoes. Answers with a Task: it has side effects, it may ask for input.",
		b.card("/agents/either" + cardPath).GetSkills()[0].GetDescription())
}

func TestCardsCanBeCached(t *testing.T) {
	t.Parallel()
	b := newBench(t, public)
	res := b.send(with(t.Context()), http.MethodGet, cardPath, "")
	etag, modified := res.Header.Get("ETag"), res.Header.Get("Last-Modified")
	require.Regexp(t, `^"[0-9a-f]+"$`, etag, "strong")
	require.Contains(t, res.Header.Get("Cache-Control"), "max-age=")
	_, err := http.ParseTime(modified)
	require.NoError(t, err)
	require.Equal(t, "*", res.Header.Get("Access-Control-Allow-Origin"))
	require.Equal(t, etag, newBench(t, public).send(with(t.Context()), http.MethodGet, cardPath, "").Header.Get("ETag"), "the same on every gateway")
	changed := newBench(t, public, withAgents(strings.Replace(defaultAgents, "1.2.3", "1.2.4", 1)))
	require.NotEqual(t, etag, changed.send(with(t.Context()), http.MethodGet, cardPath, "").Header.Get("ETag"))

	for _, headers := range [][]string{
		{"If-None-Match", etag}, {"If-None-Match", "W/" + etag}, {"If-None-Match", `"x", ` + etag}, {"If-None-Match", "*"},
		{"If-Modified-Since", modified}, {"If-Modified-Since", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)},
	} {
		res := b.send(with(t.Context()), http.MethodGet, cardPath, "", headers...)
		require.Equal(t, http.StatusNotModified, res.StatusCode, headers)
		require.Empty(t, b.body(res))
		require.Equal(t, etag, res.Header.Get("ETag"))
	}
	twoLines := b.send(with(t.Context(), "If-None-Match", `"x"`, "If-None-Match", etag), http.MethodGet, cardPath, "")
	require.Equal(t, http.StatusNotModified, twoLines.StatusCode, "several lines are one list")
	for _, headers := range [][]string{
		{"If-None-Match", `"x"`}, {"If-None-Match", `"x"`, "If-Modified-Since", modified}, {"If-Modified-Since", "Mon, 01 Jan 2001 00:00:00 GMT"},
	} {
		require.Equal(t, http.StatusOK, b.send(with(t.Context()), http.MethodGet, cardPath, "", headers...).StatusCode, headers)
	}
}

func TestOtherMethodsAndPathsOfCards(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	head := b.send(with(t.Context()), http.MethodHead, cardPath, "")
	require.Equal(t, http.StatusOK, head.StatusCode)
	require.NotEmpty(t, head.Header.Get("ETag"))
	require.Empty(t, b.body(head))

	preflight := b.send(with(t.Context()), http.MethodOptions, cardPath, "")
	require.Equal(t, http.StatusNoContent, preflight.StatusCode)
	require.Contains(t, preflight.Header.Get("Access-Control-Allow-Headers"), "A2A-Version")

	post := b.send(t.Context(), http.MethodPost, cardPath, "{}")
	require.Equal(t, http.StatusMethodNotAllowed, post.StatusCode)
	require.Equal(t, "GET, HEAD, OPTIONS", post.Header.Get("Allow"))
	require.Contains(t, b.body(post), `"code":405`)

	for _, path := range []string{
		"/.well-known/agent.json", cardPath + "/", "/agents/nobody" + cardPath, "/agents/echo/x" + cardPath, "/agents" + cardPath, "/agents/echo", "/agents/", "/t1" + cardPath,
	} {
		res := b.send(t.Context(), http.MethodGet, path, "")
		require.Equal(t, http.StatusNotFound, res.StatusCode, path)
		require.Contains(t, b.body(res), `"reason":"METHOD_NOT_FOUND"`, path)
	}
}
