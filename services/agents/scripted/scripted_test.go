package scripted_test

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/pkg/agent/agenttest"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/services/agents/scripted"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/structpb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func cluster() *agenttest.Cluster {
	return agenttest.New(scripted.New(), slog.New(slog.DiscardHandler))
}

func send(t *testing.T, c *agenttest.Cluster, m *a2apb.Message) *a2apb.Task {
	t.Helper()
	got, err := c.Send(m)
	require.NoError(t, err)
	return got
}

func TestScript_Ends(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]task.State{
		"echo": task.Completed, "anything": task.Completed, "": task.Completed, "ask": task.InputRequired,
		"auth": task.AuthRequired, "fail": task.Failed, "panic": task.Failed, "noterm": task.Failed,
		"chunks 3": task.Completed, "big 1000": task.Completed, "big 5000000": task.Failed, "late": task.Completed,
		"sleep nonsense": task.Completed,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			got := send(t, cluster(), agenttest.Text(text))
			require.Equal(t, want, got.GetStatus().GetState())
			require.NotContains(t, agent.TextOf(got.GetStatus().GetMessage()), "script says")
		})
	}
}

func TestScript_EchoIsOneArtifactWithTheText(t *testing.T) {
	t.Parallel()
	got := send(t, cluster(), agenttest.Text("a\u0000b 😀"))
	require.Len(t, got.GetArtifacts(), 1)
	require.Equal(t, "a\u0000b 😀", got.GetArtifacts()[0].GetParts()[0].GetText())
}

func TestScript_ChunksAreOneArtifactAndTheLastSaysSo(t *testing.T) {
	t.Parallel()
	c := cluster()
	got := send(t, c, agenttest.Text("chunks 3"))
	require.Len(t, got.GetArtifacts(), 1)
	require.Equal(t, "a1", got.GetArtifacts()[0].GetArtifactId())
	require.Len(t, got.GetArtifacts()[0].GetParts(), 3)
	events := c.Events(got.GetId())
	require.True(t, events[2].GetArtifactUpdate().GetLastChunk())
	require.False(t, events[1].GetArtifactUpdate().GetLastChunk())
}

func TestScript_BigHasSoManyBytes(t *testing.T) {
	t.Parallel()
	got := send(t, cluster(), agenttest.Text("big 1100000"))
	require.Len(t, got.GetArtifacts()[0].GetParts()[0].GetText(), 1100000)
}

func TestScript_SleepAndChunksTakeTheirTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		send(t, cluster(), agenttest.Text("sleep 2.5"))
		require.Equal(t, 2500*time.Millisecond, time.Since(begun))
		begun = time.Now()
		send(t, cluster(), agenttest.Text("chunks 3 200"))
		require.Equal(t, 400*time.Millisecond, time.Since(begun))
	})
}

func TestScript_ReplyCompletesWhatAsked(t *testing.T) {
	t.Parallel()
	c := cluster()
	for _, question := range []string{"ask", "auth"} {
		reply := agenttest.Text("ask")
		reply.TaskId = send(t, c, agenttest.Text(question)).GetId()
		require.Equal(t, task.Completed, send(t, c, reply).GetStatus().GetState())
	}
}

func TestScript_GrantCompletesAuth(t *testing.T) {
	t.Parallel()
	c := cluster()
	asked := send(t, c, agenttest.Text("auth"))
	grant := asked.GetStatus().GetMessage().GetParts()[1].GetData().GetStructValue().GetFields()["grant"].GetStringValue()
	got, err := c.Resume(grant)
	require.NoError(t, err)
	require.Equal(t, task.Completed, got.GetStatus().GetState())
}

func TestScript_MessageMeanwhileIsFollowedToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := cluster()
		turn, err := c.Start(agenttest.Text("sleep 1"))
		require.NoError(t, err)
		require.NoError(t, turn.Say(agenttest.Text("one")))
		require.NoError(t, turn.Say(agenttest.Text("two")))
		got := turn.Wait()
		require.Equal(t, task.Completed, got.GetStatus().GetState())
		require.Len(t, got.GetArtifacts(), 2)
	})
}

func TestScript_HangIgnoresACancel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turn, err := cluster().Start(agenttest.Text("hang"))
		require.NoError(t, err)
		time.Sleep(time.Hour)
		turn.Cancel(&structpb.Struct{})
		require.Equal(t, task.Canceled, turn.Wait().GetStatus().GetState())
		time.Sleep(2 * time.Minute)
	})
}

func TestMessage_IsOneAndOnlyForMsg(t *testing.T) {
	t.Parallel()
	c := cluster()
	require.Equal(t, "msg hello", agent.TextOf(c.Ask(agenttest.Text("msg hello")).GetMessage()))
	require.Equal(t, "msg two", agent.TextOf(c.Ask(agenttest.Text("msg two")).GetMessage()))
	require.Equal(t, "script", c.Ask(agenttest.Text("echo")).GetTaskNeeded().GetSkill())
}

func TestAgentsFile_IsValidAndKnowsTheSkills(t *testing.T) {
	t.Parallel()
	file, err := config.Parse(scripted.AgentsFile())
	require.NoError(t, err)
	settings := file.Agent(scripted.Name)
	answer, known := settings.TaskWhen("answer")
	require.True(t, known)
	require.Empty(t, answer)
	script, known := settings.TaskWhen("script")
	require.True(t, known)
	require.NotEmpty(t, script)
	require.True(t, strings.HasPrefix(settings.Card.GetName(), "Scripted"))
}
