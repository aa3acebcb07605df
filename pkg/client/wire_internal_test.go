package client

import (
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"
)

func TestCardURL(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"http://h":                       "http://h/.well-known/agent-card.json",
		"http://h/":                      "http://h/.well-known/agent-card.json",
		"https://h:1/agents/x":           "https://h:1/agents/x/.well-known/agent-card.json",
		"https://h/agents/x/":            "https://h/agents/x/.well-known/agent-card.json",
		"https://h/cards/mine.json":      "https://h/cards/mine.json",
		"https://h/cards/mine.json?v=1#": "https://h/cards/mine.json?v=1",
	} {
		got, err := cardURL(address)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, address := range []string{"", "h:8080", "localhost:8080", "ftp://h", "http://", "http://h\n"} {
		_, err := cardURL(address)
		require.Error(t, err, address)
	}
}

func TestChooseTakesTheFirstUsableInterface(t *testing.T) {
	t.Parallel()
	card := func(interfaces ...string) *a2apb.AgentCard {
		c := &a2apb.AgentCard{}
		for i := 0; i < len(interfaces); i += 2 {
			c.SupportedInterfaces = append(c.SupportedInterfaces, &a2apb.AgentInterface{
				ProtocolBinding: interfaces[i], ProtocolVersion: interfaces[i+1],
			})
		}
		return c
	}
	tests := []struct {
		name             string
		card             *a2apb.AgentCard
		bindings         []string
		binding, version string
	}{
		{"the card's order", card(GRPC, "1.0", JSONRPC, "1.0"), nil, GRPC, "1.0"},
		{"the caller's order", card(GRPC, "1.0", JSONRPC, "1.0"), []string{HTTPJSON, JSONRPC}, JSONRPC, "1.0"},
		{"1.0 before another 1", card(GRPC, "1.3", JSONRPC, "1.0"), nil, JSONRPC, "1.0"},
		{"another 1 before nothing", card(JSONRPC, "0.3", JSONRPC, "1.3"), nil, JSONRPC, "1.3"},
		{"not what nobody speaks", card("https://x.test/soap", "1.0", HTTPJSON, "1.0"), nil, HTTPJSON, "1.0"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := choose(test.card, test.bindings)
			require.NoError(t, err)
			require.Equal(t, []string{test.binding, test.version}, []string{got.GetProtocolBinding(), got.GetProtocolVersion()})
		})
	}
	for _, c := range []*a2apb.AgentCard{card(), card(JSONRPC, "0.3"), card(JSONRPC, ""), card("x", "1.0")} {
		_, err := choose(c, nil)
		require.ErrorIs(t, err, ErrNoInterface)
	}
}

func TestGRPCWithoutTLSOnlyWhereNobodyListens(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{
		"localhost:9090": "insecure", "127.0.0.1:9090": "insecure", "[::1]:9090": "insecure",
		"agents.test:9090": "tls", "10.0.0.1:9090": "tls",
	} {
		require.Equal(t, want, transportCredentials("", target, Options{}).Info().SecurityProtocol, target)
	}
	require.Equal(t, "insecure", transportCredentials("http", "agents.test:1", Options{}).Info().SecurityProtocol)
	require.Equal(t, "tls", transportCredentials("https", "localhost:1", Options{}).Info().SecurityProtocol)
	require.Equal(t, "insecure", transportCredentials("", "agents.test:1", Options{plaintext: true}).Info().SecurityProtocol)
}
