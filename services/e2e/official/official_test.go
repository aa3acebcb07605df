// Package official_test lets the official Go client (a2a-go) do every operation
// over each binding, found by the agent card as any client finds it.
package official_test

import (
	"context"
	_ "embed"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
	a2agrpc "github.com/a2aproject/a2a-go/v2/a2agrpc/v1"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/services/agents/scripted"
	"github.com/errandhq/errand/services/e2e/internal/harness"
)

//go:embed testdata/agents.yaml
var agentsFile []byte

var (
	suite    = harness.NewSuite()
	clusters = map[harness.Engine]func() *harness.Cluster{
		harness.SQLite:   sync.OnceValue(func() *harness.Cluster { return start(harness.SQLite) }),
		harness.Postgres: sync.OnceValue(func() *harness.Cluster { return start(harness.Postgres) }),
	}
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(suite.Around(m))
}

func start(engine harness.Engine) *harness.Cluster {
	second := scripted.New()
	second.Name = "second"
	return harness.Start(suite, harness.Options{
		Engine: engine, AgentsFile: agentsFile, Agents: []agent.Agent{scripted.New(), second},
	})
}

// transport is a binding of the official client.
type transport struct {
	protocol a2a.TransportProtocol
	option   func(*http.Client) a2aclient.FactoryOption
}

var transports = []transport{
	{a2a.TransportProtocolJSONRPC, a2aclient.WithJSONRPCTransport},
	{a2a.TransportProtocolHTTPJSON, a2aclient.WithRESTTransport},
	{a2a.TransportProtocolGRPC, func(*http.Client) a2aclient.FactoryOption {
		return a2agrpc.WithGRPCTransport(grpc.WithTransportCredentials(insecure.NewCredentials()))
	}},
}

// client is the official client of one agent, and what it found.
type client struct {
	*a2aclient.Client
	card *a2a.AgentCard
	// direct is a client without a card, which refuses nothing by itself.
	direct *a2aclient.Client
}

// each runs test over each binding on each database, with the agent that is
// found at the base path.
func each(t *testing.T, base string, test func(t *testing.T, c client)) {
	t.Helper()
	for engine, cluster := range clusters {
		for _, way := range transports {
			t.Run(string(engine)+"/"+string(way.protocol), func(t *testing.T) {
				t.Parallel()
				test(t, connect(t, cluster(), base, way))
			})
		}
	}
}

func connect(t *testing.T, cluster *harness.Cluster, base string, way transport) client {
	t.Helper()
	web := cluster.Client.HTTP
	card, err := agentcard.NewResolver(web).Resolve(t.Context(), cluster.Client.URL+base)
	require.NoError(t, err)
	options := []a2aclient.FactoryOption{a2aclient.WithDefaultsDisabled(), way.option(web)}
	byCard, err := a2aclient.NewFromCard(t.Context(), card, options...)
	require.NoError(t, err)
	direct, err := a2aclient.NewFromEndpoints(t.Context(), card.SupportedInterfaces, options...)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, byCard.Destroy())
		require.NoError(t, direct.Destroy())
	})
	return client{Client: byCard, card: card, direct: direct}
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
