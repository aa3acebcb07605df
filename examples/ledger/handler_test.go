package main

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/pkg/agent/agenttest"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/task"
	"github.com/stretchr/testify/require"
)

func cluster() *agenttest.Cluster {
	return agenttest.New(newAgent(), slog.New(slog.DiscardHandler))
}

func file(t *testing.T, name string) *a2apb.Part {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("data", name))
	require.NoError(t, err)
	return agent.File(name, "text/csv", data)
}

func month(t *testing.T, name string) *a2apb.Message {
	t.Helper()
	return agenttest.Message(agent.Text("Please reconcile."), file(t, "invoices-"+name+".csv"), file(t, "ledger-"+name+".csv"))
}

func send(t *testing.T, c *agenttest.Cluster, m *a2apb.Message) *a2apb.Task {
	t.Helper()
	got, err := c.Send(m)
	require.NoError(t, err)
	return got
}

func reply(text string, to *a2apb.Task) *a2apb.Message {
	m := agenttest.Text(text)
	m.TaskId = to.GetId()
	return m
}

func statusText(got *a2apb.Task) string { return agent.TextOf(got.GetStatus().GetMessage()) }

func text(a *a2apb.Artifact) string {
	var b strings.Builder
	for _, p := range a.GetParts() {
		b.WriteString(p.GetText())
	}
	return b.String()
}

func TestLedger_AsksAboutSmallInvoicesAndReports(t *testing.T) {
	t.Parallel()
	c := cluster()
	asked := send(t, c, month(t, "2026-09"))
	require.Equal(t, task.InputRequired, asked.GetStatus().GetState())
	require.Contains(t, statusText(asked), "INV-2026-0906")
	require.Contains(t, statusText(asked), "51.65 EUR")

	require.Len(t, asked.GetArtifacts(), 1)
	require.Len(t, asked.GetArtifacts()[0].GetParts(), 3)
	var matches []map[string]string
	require.NoError(t, json.Unmarshal([]byte(text(asked.GetArtifacts()[0])), &matches))
	require.Len(t, matches, 8)

	done := send(t, c, reply("Yes, please.", asked))
	require.Equal(t, task.Completed, done.GetStatus().GetState())
	require.Equal(t, "8 of 12 invoices are paid, 2 are open.", statusText(done))
	require.Len(t, done.GetArtifacts(), 2)
	require.Contains(t, text(done.GetArtifacts()[1]), "together 51.65 EUR.")
}

func TestLedger_NoLeavesSmallInvoicesOpen(t *testing.T) {
	t.Parallel()
	c := cluster()
	asked := send(t, c, month(t, "2026-09"))
	unclear := send(t, c, reply("What do you mean?", asked))
	require.Equal(t, task.InputRequired, unclear.GetStatus().GetState())
	done := send(t, c, reply("no", unclear))
	require.Equal(t, "8 of 12 invoices are paid, 4 are open.", statusText(done))
	require.NotContains(t, text(done.GetArtifacts()[1]), "Rounding")
}

func TestLedger_NextMonthInTheContextReusesTheAnswer(t *testing.T) {
	t.Parallel()
	c := cluster()
	september := send(t, c, reply("yes", send(t, c, month(t, "2026-09"))))

	next := month(t, "2026-10")
	next.ContextId, next.ReferenceTaskIds = september.GetContextId(), []string{september.GetId()}
	october := send(t, c, next)
	require.Equal(t, task.Completed, october.GetStatus().GetState())
	report := text(october.GetArtifacts()[1])
	require.Contains(t, report, "Follows task "+september.GetId())
	require.Contains(t, report, "as decided in task "+september.GetId())

	elsewhere := send(t, c, month(t, "2026-10"))
	require.Equal(t, task.InputRequired, elsewhere.GetStatus().GetState(), "another context knows nothing")
}

func TestLedger_TakesFilesAsTextAndAsksForWhatIsMissing(t *testing.T) {
	t.Parallel()
	c := cluster()
	invoices := string(file(t, "invoices-2026-10.csv").GetRaw())
	entries := string(file(t, "ledger-2026-10.csv").GetRaw())

	asked := send(t, c, agenttest.Text("Please reconcile October.\n\n"+invoices))
	require.Equal(t, task.InputRequired, asked.GetStatus().GetState())
	require.Contains(t, statusText(asked), "ledger entries")
	asked = send(t, c, reply("Sorry:\r\n\r\n"+entries, asked))
	require.Contains(t, statusText(asked), "Are they rounding?")
	require.Equal(t, task.Completed, send(t, c, reply("no", asked)).GetStatus().GetState())
}

func TestLedger_SaysWhichLineItCannotRead(t *testing.T) {
	t.Parallel()
	broken := "invoice,date,customer,amount_eur\nINV-1,2026-09-01,Ada,lots"
	got := send(t, cluster(), agenttest.Message(agent.Text(broken), file(t, "ledger-2026-09.csv")))
	require.Equal(t, task.Failed, got.GetStatus().GetState())
	require.Contains(t, statusText(got), "line 2")
}

func TestMatchesJSON_IsOneDocumentHoweverFewTheMatches(t *testing.T) {
	t.Parallel()
	pieces, err := matchesJSON(nil, 3)
	require.NoError(t, err)
	require.Len(t, pieces, 3)
	require.JSONEq(t, "[]", strings.Join(pieces, ""))
}

func TestAgentsFile_IsValid(t *testing.T) {
	t.Parallel()
	f, err := config.Load("agents.yaml")
	require.NoError(t, err)
	require.NotNil(t, f.Agent(newAgent().Name))
}
