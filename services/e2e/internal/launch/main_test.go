package launch_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/harness"
	"github.com/errandhq/errand/services/e2e/internal/launch"
)

const (
	patience   = time.Minute
	agentsFile = "../../../agents/scripted/agents.yaml"
)

var (
	suite    = harness.NewSuite()
	programs = sync.OnceValue(func() string { return harness.BuildPrograms(suite) })
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(suite.Around(m)) }

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// sender sends to a cluster's front.
type sender struct {
	*binding.Client

	sent int
}

func newSender(t *testing.T, web, rpc string) *sender {
	t.Helper()
	client, err := binding.NewClient("http://"+web, rpc)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return &sender{Client: client}
}

// try sends a message once and waits for its task to complete.
func (s *sender) try(ctx context.Context, b binding.Binding, id string) (*a2apb.Task, error) {
	answer, err := b.Call(ctx, binding.SendMessage, &a2apb.SendMessageRequest{Message: &a2apb.Message{
		MessageId: id, Role: a2apb.Role_ROLE_USER,
		Parts: []*a2apb.Part{{Content: &a2apb.Part_Text{Text: "echo hello"}}},
	}})
	if err != nil {
		return nil, err
	}
	if answer.Err != nil {
		return nil, answer.Err
	}
	task := answer.Result.(*a2apb.SendMessageResponse).GetTask()
	if state := task.GetStatus().GetState(); state != a2apb.TaskState_TASK_STATE_COMPLETED {
		return nil, fmt.Errorf("the task is %s", state)
	}
	return task, nil
}

// requireCompletes sends a message over a binding, again while the cluster is
// hurt, until it has completed.
func (s *sender) requireCompletes(t *testing.T, b binding.Binding) *a2apb.Task {
	t.Helper()
	s.sent++
	id := fmt.Sprintf("%s-%d", t.Name(), s.sent)
	for ctx := within(t); ; {
		try, cancel := context.WithTimeout(ctx, 5*time.Second)
		task, err := s.try(try, b, id)
		cancel()
		if err == nil {
			return task
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			require.NoError(t, err)
		}
	}
}

// requireAllComplete sends over every binding.
func (s *sender) requireAllComplete(t *testing.T) {
	t.Helper()
	for _, b := range s.Bindings("") {
		s.requireCompletes(t, b)
	}
}

// list lists one task.
func (s *sender) list(t *testing.T, pageToken string) *a2apb.ListTasksResponse {
	t.Helper()
	size := int32(1)
	answer, err := s.Bindings("")[0].Call(within(t), binding.ListTasks, &a2apb.ListTasksRequest{PageSize: &size, PageToken: pageToken})
	require.NoError(t, err)
	require.Nil(t, answer.Err)
	return answer.Result.(*a2apb.ListTasksResponse)
}

func testConfig(t *testing.T) launch.Config {
	t.Helper()
	return launch.Defaults(filepath.Join(harness.ClusterDir(t), "cluster"), programs(), agentsFile)
}

// onFailure shows what a process has written.
func onFailure(t *testing.T, c *launch.Cluster) {
	t.Helper()
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for _, p := range c.Processes() {
			text, _ := os.ReadFile(p.Log())
			const most = 3000
			t.Logf("%s:\n%s", p.Name(), text[max(0, len(text)-most):])
		}
	})
}
