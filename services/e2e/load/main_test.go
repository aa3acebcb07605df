// Package load_test is what a cluster of processes goes through on a busy day: its
// gateways are replaced one after the other while senders send, and NATS restarts
// under very many tasks and subscribers.
package load_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/harness"
	"github.com/errandhq/errand/services/e2e/internal/launch"
)

const patience = 3 * time.Minute

var (
	suite    = harness.NewSuite()
	programs = sync.OnceValue(func() string { return harness.BuildPrograms(suite) })
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(suite.Around(m)) }

func start(t *testing.T, change func(*launch.Config)) (*launch.Cluster, *binding.Client) {
	t.Helper()
	cfg := launch.Defaults(filepath.Join(harness.ClusterDir(t), "cluster"), programs(), "testdata/agents.yaml")
	cfg.TaskStores, cfg.Notifiers, cfg.Executors = 1, 1, 1
	change(&cfg)
	cluster := harness.Launch(t, cfg)
	t.Cleanup(func() {
		for _, p := range cluster.Processes() {
			if t.Failed() {
				text, _ := os.ReadFile(p.Log())
				const most = 3000
				t.Logf("%s:\n%s", p.Name(), text[max(0, len(text)-most):])
			}
		}
	})
	client, err := binding.NewClient("http://"+cluster.HTTP(), cluster.GRPC())
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return cluster, client
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func say(text string) *a2apb.SendMessageRequest {
	return &a2apb.SendMessageRequest{Message: &a2apb.Message{
		MessageId: uuid.NewString(), Role: a2apb.Role_ROLE_USER,
		Parts: []*a2apb.Part{{Content: &a2apb.Part_Text{Text: text}}},
	}, Configuration: &a2apb.SendMessageConfiguration{}}
}

// retryable is what a sender may be told while the cluster is changed under it.
func retryable(e *binding.Error) bool { return e.Retry() != nil || e.Reason() == "UNAVAILABLE" }

// pause lets a moment pass before another try.
func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(100 * time.Millisecond):
		return true
	}
}
