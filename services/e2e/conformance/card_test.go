package conformance_test

import (
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/errandhq/errand/services/e2e/internal/harness"
)

const cardPath = "/.well-known/agent-card.json"

func card(t *testing.T, cluster *harness.Cluster, base string) *a2apb.AgentCard {
	t.Helper()
	got := exchange{method: http.MethodGet, path: base + cardPath, header: map[string]string{"A2A-Version": ""}}.do(t, cluster)
	require.Equal(t, http.StatusOK, got.Status, "%s", got.Body)
	require.Equal(t, "application/json", got.Header.Get("Content-Type"))
	c := &a2apb.AgentCard{}
	require.NoError(t, protojson.Unmarshal(got.Body, c))
	return c
}

// CARD-DISC-001, CARD-PROTO-001, CARD-PROTO-002, CARD-STRUCT-001,
// BIND-FIELD-001, A2A §8.2, §8.3.
func TestTheCardDeclaresTheThreeBindings(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
		c := card(t, cluster, "")
		require.Equal(t, "scripted", c.GetName())
		require.NotEmpty(t, c.GetDescription())
		require.Equal(t, "1.2.3", c.GetVersion())
		require.NotEmpty(t, c.GetDefaultInputModes())
		require.NotEmpty(t, c.GetDefaultOutputModes())
		require.NotEmpty(t, c.GetSkills())
		require.True(t, c.GetCapabilities().GetStreaming())
		require.False(t, c.GetCapabilities().GetPushNotifications())
		require.False(t, c.GetCapabilities().GetExtendedAgentCard())
		urls := map[string]string{}
		for _, i := range c.GetSupportedInterfaces() {
			require.Equal(t, "1.0", i.GetProtocolVersion())
			urls[i.GetProtocolBinding()] = i.GetUrl()
		}
		require.Len(t, urls, 3)
		require.Equal(t, "http://"+local(t, cluster.HTTP)+"/rpc", urls["JSONRPC"])
		require.Equal(t, "http://"+local(t, cluster.HTTP), strings.TrimSuffix(urls["HTTP+JSON"], "/"))
		require.Equal(t, local(t, cluster.GRPC), urls["GRPC"])
	})
}

// local is an address as the cards of a gateway without a public one say it: a
// loopback listener by its name.
func local(t *testing.T, addr string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	return net.JoinHostPort("localhost", port)
}

// Each agent has a card of its own, below its base; its gRPC interface names it.
func TestEachAgentHasItsCard(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
		for _, name := range []string{"scripted", tckAgent, pickyAgent, plainAgent} {
			c := card(t, cluster, "/agents/"+name)
			require.Equal(t, name, c.GetName())
			for _, i := range c.GetSupportedInterfaces() {
				switch i.GetProtocolBinding() {
				case "GRPC":
					require.Contains(t, []string{"self." + name, "default." + name}, i.GetTenant())
				default:
					require.Contains(t, i.GetUrl(), "http://"+local(t, cluster.HTTP)+"/agents/"+name)
				}
			}
		}
		require.False(t, card(t, cluster, "/agents/plain").GetCapabilities().GetStreaming())
		require.True(t, card(t, cluster, "/agents/picky").GetCapabilities().GetExtensions()[0].GetRequired())
	})
}

// CARD-CACHE-001, CARD-CACHE-002, CARD-CACHE-003, A2A §8.6.
func TestTheCardCanBeCached(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
		get := func(header map[string]string) (int, http.Header, []byte) {
			got := exchange{method: http.MethodGet, path: cardPath, header: header}.do(t, cluster)
			return got.Status, got.Header, got.Body
		}
		_, header, _ := get(nil)
		tag := header.Get("ETag")
		require.NotEmpty(t, tag)
		require.Contains(t, header.Get("Cache-Control"), "max-age=")
		modified, err := http.ParseTime(header.Get("Last-Modified"))
		require.NoError(t, err)

		for _, same := range []map[string]string{
			{"If-None-Match": tag}, {"If-None-Match": "W/" + strings.TrimPrefix(tag, "W/")}, {"If-None-Match": `"x", ` + tag},
			{"If-None-Match": tag + `,"x"`}, {"If-None-Match": "*"},
			{"If-Modified-Since": modified.Format(http.TimeFormat)},
			{"If-None-Match": tag, "If-Modified-Since": "Thu, 01 Jan 1970 00:00:00 GMT"},
		} {
			status, header, body := get(same)
			require.Equal(t, http.StatusNotModified, status, "%v", same)
			require.Empty(t, body)
			require.Equal(t, tag, header.Get("ETag"))
		}
		for _, changed := range []map[string]string{
			{"If-None-Match": `"x"`}, {"If-None-Match": `"` + tag + `"`}, {"If-Modified-Since": "Thu, 01 Jan 1970 00:00:00 GMT"},
			{"If-Modified-Since": "yesterday"}, {"If-None-Match": `"x"`, "If-Modified-Since": modified.Format(http.TimeFormat)},
		} {
			status, _, body := get(changed)
			require.Equal(t, http.StatusOK, status, "%v", changed)
			require.True(t, json.Valid(body))
		}
	})
}

// A2A §8.3.1: URLs come from the configuration, whoever asks.
func TestForgedHostsDoNotChangeTheCard(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
		plain := exchange{method: http.MethodGet, path: cardPath}.do(t, cluster)
		for _, header := range []map[string]string{
			{"X-Forwarded-Proto": "https", "X-Forwarded-Host": "evil.test"}, {"Forwarded": "host=evil.test;proto=https"}, {"X-Original-Host": "evil.test"},
		} {
			got := exchange{method: http.MethodGet, path: cardPath, header: header}.do(t, cluster)
			require.Equal(t, string(plain.Body), string(got.Body))
		}
		r, err := http.NewRequestWithContext(within(t), http.MethodGet, cluster.Client.URL+cardPath, nil)
		require.NoError(t, err)
		r.Host = "evil.test"
		answer, err := cluster.Client.HTTP.Do(r)
		require.NoError(t, err)
		defer answer.Body.Close()
		c := make([]byte, len(plain.Body)+1)
		n, _ := answer.Body.Read(c)
		require.NotContains(t, string(c[:n]), "evil.test")
	})
}

// CARD-DISC-001, A2A §8.2, §14.3: at the origin and below each interface.
func TestTheCardIsWhereClientsLook(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
		origin := exchange{method: http.MethodGet, path: cardPath}.do(t, cluster)
		head := exchange{method: http.MethodHead, path: cardPath}.do(t, cluster)
		require.Equal(t, http.StatusOK, head.Status)
		require.Empty(t, head.Body)
		require.Equal(t, origin.Header.Get("ETag"), head.Header.Get("ETag"))
		post := exchange{method: http.MethodPost, path: cardPath, body: "{}"}.do(t, cluster)
		require.Equal(t, http.StatusMethodNotAllowed, post.Status)
		for _, path := range []string{"/agents/scripted" + cardPath, "/rpc" + cardPath} {
			copied := exchange{method: http.MethodGet, path: path}.do(t, cluster)
			require.Contains(t, []int{http.StatusOK, http.StatusNotFound}, copied.Status, path)
		}
		for _, path := range []string{"/.well-known/agent.json", cardPath + "/", "/default" + cardPath, "/agents/nobody" + cardPath, "/.well-known/", "/nobody" + cardPath} {
			got := exchange{method: http.MethodGet, path: path}.do(t, cluster)
			require.Contains(t, []int{http.StatusOK, http.StatusNotFound, http.StatusMethodNotAllowed}, got.Status, path)
			require.NotContains(t, got.Header.Get("Content-Type"), "text/", path)
		}
		bad := exchange{method: http.MethodGet, path: cardPath, header: map[string]string{"A2A-Version": "99.0"}}.do(t, cluster)
		require.Equal(t, http.StatusOK, bad.Status, "the card is there for all versions")
	})
}
