package deploytest

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/config"
)

// The executor of the image runs the agents that come with Errand, so a cluster
// works as deployed only if the file names them and their skills.
func TestTheAgentsFileIsThatOfErrandDev(t *testing.T) {
	t.Parallel()
	deployed, err := config.Load("../../../deploy/kubernetes/agents.yaml")
	require.NoError(t, err)
	dev, err := config.Load("../../agents/scripted/agents.yaml")
	require.NoError(t, err)
	require.Equal(t, dev.Version, deployed.Version)
}

func TestTheNATSServerHasJetStream(t *testing.T) {
	t.Parallel()
	options, err := server.ProcessConfigFile("../../../deploy/nats/nats-server.conf")
	require.NoError(t, err)
	require.True(t, options.JetStream)
	require.Positive(t, options.JetStreamMaxStore)
}
