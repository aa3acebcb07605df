package deploytest

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/config"
)

func TestTheAgentsFileIsValid(t *testing.T) {
	t.Parallel()
	agents, err := config.Load("../../../deploy/kubernetes/agents.yaml")
	require.NoError(t, err)
	require.NotNil(t, agents.Default())
}

func TestTheNATSServerHasJetStream(t *testing.T) {
	t.Parallel()
	options, err := server.ProcessConfigFile("../../../deploy/nats/nats-server.conf")
	require.NoError(t, err)
	require.True(t, options.JetStream)
	require.Positive(t, options.JetStreamMaxStore)
}
