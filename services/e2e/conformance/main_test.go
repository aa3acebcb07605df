// Package conformance_test holds one test per requirement that A2A 1.0 and
// Errand's own promises make of the public edge. Each runs over every binding
// that it is about, on both databases, against one running cluster per database.
//
// Requirements are named by the ids of the official compatibility kit where it
// has one, and by sections of the A2A specification.
package conformance_test

import (
	"embed"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/services/agents/scripted"
	"github.com/errandhq/errand/services/agents/tck"
	"github.com/errandhq/errand/services/e2e/internal/harness"
)

//go:embed testdata/agents.yaml
var files embed.FS

// Names of the agents in testdata/agents.yaml; the default agent is scripted.
const (
	defaultAgent = ""
	tckAgent     = "tck"
	probeAgent   = "probe"
	// Runs the same code as probe, refuses messages to a running task.
	strictAgent = "strict"
	// Has a required extension and takes plain text only.
	pickyAgent = "picky"
	// Its card declares no streaming.
	plainAgent = "plain"
	// Makes tasks, and no executor has it.
	unservedAgent = "unserved"
	// Answers by Messages, and no executor has it.
	absentAgent = "absent"
	// Answers with the gRPC codes of A2A 1.0.0.
	olderAgent = "older"
)

var (
	suite    = harness.NewSuite()
	clusters = map[harness.Engine]func() *harness.Cluster{
		harness.SQLite:   sync.OnceValue(func() *harness.Cluster { return start(suite, harness.SQLite) }),
		harness.Postgres: sync.OnceValue(func() *harness.Cluster { return start(suite, harness.Postgres) }),
	}
)

var edgePrograms = sync.OnceValue(func() harness.EdgePrograms { return harness.BuildEdge(suite) })

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(suite.Around(m))
}

func start(t testing.TB, engine harness.Engine, change ...func(*harness.Options)) *harness.Cluster {
	t.Helper()
	options := harness.Options{Engine: engine, AgentsFile: agentsFile(t), Agents: agents()}
	for _, c := range change {
		c(&options)
	}
	return harness.Start(t, options)
}

func agentsFile(t testing.TB) []byte {
	t.Helper()
	file, err := files.ReadFile("testdata/agents.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func agents() []agent.Agent {
	named := func(a agent.Agent, name string) agent.Agent {
		a.Name = name
		return a
	}
	return []agent.Agent{
		scripted.New(), tck.New(), probe(probeAgent), probe(strictAgent),
		named(scripted.New(), pickyAgent), named(scripted.New(), plainAgent), named(scripted.New(), olderAgent),
	}
}
