package redrive_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/errandhq/errand/pkg/agent"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/agents/scripted"
	"github.com/errandhq/errand/services/e2e/internal/harness"
)

func TestSendersDontReachTheServiceOfOperators(t *testing.T) {
	t.Parallel()
	c := harness.Start(t, harness.Options{
		Engine: harness.SQLite, AgentsFile: scripted.AgentsFile(), Agents: []agent.Agent{scripted.New()},
	})
	conn, err := grpc.NewClient(c.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	admin := taskstorev1.NewAdminServiceClient(conn)
	_, err = admin.ListDeadLetters(t.Context(), &taskstorev1.ListDeadLettersRequest{})
	require.Equal(t, codes.Unimplemented, status.Code(err))
	_, err = admin.RedriveDeadLetters(t.Context(), &taskstorev1.RedriveDeadLettersRequest{TaskIds: []string{"t"}})
	require.Equal(t, codes.Unimplemented, status.Code(err))
}
