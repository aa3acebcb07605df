package agents_test

import (
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/pkg/agent/agenttest"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/services/e2e/internal/chaos/agents"
	"github.com/errandhq/errand/services/e2e/internal/chaos/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// runs is a recorder that remembers how each run ended.
type runs struct {
	mu  sync.Mutex
	all []journal.Run
}

func (r *runs) Write(run journal.Run) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.all); n > 0 && r.all[n-1].ID == run.ID {
		r.all = r.all[:n-1]
	}
	r.all = append(r.all, run)
	return nil
}

func cluster(r *runs) *agenttest.Cluster {
	all := agents.New("executor-0", 1, r)
	return agenttest.New(all[1], slog.New(slog.DiscardHandler))
}

func send(t *testing.T, c *agenttest.Cluster, m *a2apb.Message) *a2apb.Task {
	t.Helper()
	got, err := c.Send(m)
	require.NoError(t, err)
	return got
}

func TestEachRunIsWrittenDownAndSignsWhatItWrites(t *testing.T) {
	t.Parallel()
	r := new(runs)
	got := send(t, cluster(r), agenttest.Text("steps 3 0"))
	require.Equal(t, task.Completed, got.GetStatus().GetState())
	require.Len(t, r.all, 1)
	require.Equal(t, "completed", r.all[0].Result)
	require.Equal(t, got.GetId(), r.all[0].TaskID)
	for i, p := range got.GetArtifacts()[0].GetParts() {
		require.Equal(t, journal.Sign(r.all[0].ID, journal.Chunk(i+1, 3)), p.GetText())
	}
	run, _, ok := journal.Signed(agent.TextOf(got.GetStatus().GetMessage()))
	require.True(t, ok)
	require.Equal(t, r.all[0].ID, run)
}

func TestAnAnswerIsQuotedAndThenTheStepsAreTaken(t *testing.T) {
	t.Parallel()
	for question, artifacts := range map[string]int{"ask": 1, "ask steps 2 0": 2} {
		r := new(runs)
		c := cluster(r)
		asked := send(t, c, agenttest.Text(question))
		require.Equal(t, task.InputRequired, asked.GetStatus().GetState())
		reply := agenttest.Text("ask")
		reply.TaskId = asked.GetId()
		got := send(t, c, reply)
		require.Equal(t, task.Completed, got.GetStatus().GetState())
		require.Len(t, got.GetArtifacts(), artifacts)
		require.Equal(t, journal.Sign(r.all[1].ID, journal.Quote("ask")), got.GetArtifacts()[0].GetParts()[0].GetText())
		require.Equal(t, "asked", r.all[0].Result)
	}
}

func TestFailIsOnPurpose(t *testing.T) {
	t.Parallel()
	r := new(runs)
	require.Equal(t, task.Failed, send(t, cluster(r), agenttest.Text("fail")).GetStatus().GetState())
	require.Equal(t, "failed", r.all[0].Result)
}

func TestLongGoesOnUntilItIsCanceled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := new(runs)
		turn, err := cluster(r).Start(agenttest.Text("long 60"))
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		turn.Cancel(&structpb.Struct{})
		turn.Wait()
		require.Equal(t, "canceled", r.all[0].Result)
	})
}

func TestMsgIsAnsweredDirectly(t *testing.T) {
	t.Parallel()
	c := cluster(new(runs))
	require.Equal(t, "msg hello", agent.TextOf(c.Ask(agenttest.Text("msg hello")).GetMessage()))
	require.Equal(t, "script", c.Ask(agenttest.Text("steps 1 0")).GetTaskNeeded().GetSkill())
}

func TestFileHasTheAgents(t *testing.T) {
	t.Parallel()
	file, err := config.Parse(agents.File())
	require.NoError(t, err)
	for _, name := range []string{agents.Worker, agents.Hybrid} {
		require.Equal(t, agents.MaxAttempts, file.Agent(name).MaxAttempts, name)
		require.Equal(t, agents.Lease, file.Agent(name).Lease.Value(), name)
	}
}
