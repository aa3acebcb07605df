package lease_test

import (
	"context"
	_ "embed"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/harness"
)

//go:embed testdata/agents.yaml
var agentsFile []byte

// The agent, its lease as the agents file has it, and what the reaper adds.
const (
	witness  = "witness"
	lease    = 2 * time.Second
	tick     = time.Second
	patience = time.Minute
)

// cluster is a node, which has no executor of the agent, and executors of it.
type cluster struct {
	*testing.T
	node    *harness.Dev
	client  *binding.Client
	backend harness.Backend
	file    string
}

func start(t *testing.T, args ...string) *cluster {
	t.Helper()
	c := &cluster{T: t, file: filepath.Join(t.TempDir(), "runs")}
	c.backend.AgentsFile = filepath.Join(t.TempDir(), "agents.yaml")
	require.NoError(t, os.WriteFile(c.backend.AgentsFile, agentsFile, 0o600))
	require.NoError(t, os.WriteFile(c.file, nil, 0o600))
	args = append([]string{"--data-dir", t.TempDir(), "--agents", c.backend.AgentsFile}, args...)
	c.node = harness.StartDev(t, programs.errand, args...)
	c.client = c.node.Client
	c.backend.TaskStoreAddr, c.backend.NATSURL = c.node.TaskStoreAddr, c.node.NATSURL
	return c
}

func (c *cluster) executor() *harness.Process {
	c.Helper()
	p := harness.StartExecutor(c, c.backend, programs.witness, "ERRAND_E2E_RUNS="+c.file)
	c.Cleanup(func() { c.signal(p, syscall.SIGCONT) }) // or it could not be stopped
	return p
}

func (c *cluster) executors(n int) map[int]*harness.Process {
	c.Helper()
	byPID := map[int]*harness.Process{}
	for range n {
		p := c.executor()
		byPID[p.PID()] = p
	}
	return byPID
}

func (c *cluster) signal(p *harness.Process, s syscall.Signal) {
	if err := syscall.Kill(p.PID(), s); err != nil {
		c.Logf("%v to %d: %v", s, p.PID(), err)
	}
}

func call[T proto.Message](c *cluster, op binding.Op, in proto.Message) T {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	answer, err := c.client.Bindings(witness)[0].Call(ctx, op, in)
	require.NoError(c, err)
	require.Nil(c, answer.Err)
	result, ok := answer.Result.(T)
	require.True(c, ok)
	return result
}

func message(text string) *a2apb.SendMessageRequest {
	return &a2apb.SendMessageRequest{
		Message: &a2apb.Message{
			MessageId: uuid.NewString(), Role: a2apb.Role_ROLE_USER,
			Parts: []*a2apb.Part{{Content: &a2apb.Part_Text{Text: text}}},
		},
		Configuration: &a2apb.SendMessageConfiguration{ReturnImmediately: true},
	}
}

func (c *cluster) send(text string) string {
	c.Helper()
	return call[*a2apb.SendMessageResponse](c, binding.SendMessage, message(text)).GetTask().GetId()
}

func (c *cluster) get(id string) *a2apb.Task {
	c.Helper()
	return call[*a2apb.Task](c, binding.GetTask, &a2apb.GetTaskRequest{Id: id})
}

func (c *cluster) awaitState(id string, want a2apb.TaskState) *a2apb.Task {
	c.Helper()
	var got *a2apb.Task
	require.Eventually(c, func() bool {
		got = c.get(id)
		return got.GetStatus().GetState() == want
	}, patience, 20*time.Millisecond, "%v", got)
	return got
}

// result is what the artifact says, the id of the process that wrote it.
func result(t *a2apb.Task) string {
	var texts []string
	for _, a := range t.GetArtifacts() {
		for _, p := range a.GetParts() {
			texts = append(texts, p.GetText())
		}
	}
	return strings.Join(texts, " ")
}
