package crash_test

import (
	_ "embed"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/services/e2e/internal/harness"
)

//go:embed testdata/agents.yaml
var agentsFile []byte

// The agents of the file: one runs in each node, one in a process of its own that
// writes down its runs.
const (
	inNode  = "scripted"
	counted = "counted"
)

// programs are what fleets run.
type programs struct {
	errand, counted, agentsFile string
}

func build(t *testing.T) programs {
	t.Helper()
	p := programs{
		errand:     harness.BuildErrand(t),
		counted:    harness.Build(t, ".", "github.com/errandhq/errand/services/e2e/internal/counted"),
		agentsFile: filepath.Join(t.TempDir(), "agents.yaml"),
	}
	require.NoError(t, os.WriteFile(p.agentsFile, agentsFile, 0o600))
	return p
}

// fleet is one or several nodes, all of them `errand dev`, and an executor.
type fleet struct {
	nodes    []*harness.Dev
	executor *harness.Process
	// runs is where the executor writes its runs.
	runs string
}

func (p programs) start(t *testing.T, nodes int, args ...string) *fleet {
	t.Helper()
	f := &fleet{runs: filepath.Join(t.TempDir(), "runs")}
	for range nodes {
		own := append([]string{"--data-dir", t.TempDir(), "--agents", p.agentsFile}, args...)
		f.nodes = append(f.nodes, harness.StartDev(t, p.errand, own...))
	}
	f.executor = harness.StartExecutor(t, harness.Backend{
		TaskStoreAddr: f.nodes[0].TaskStoreAddr, NATSURL: f.nodes[0].NATSURL, AgentsFile: p.agentsFile,
	}, p.counted, "ERRAND_E2E_RUNS="+f.runs)
	return f
}

// crash kills one process and starts it again.
func (f *fleet) crash(t *testing.T, dice *rand.Rand) {
	t.Helper()
	victim := f.executor
	if i := dice.IntN(2*len(f.nodes) + 1); i < 2*len(f.nodes) {
		victim = f.nodes[i/2].Process
	}
	victim.Kill(t)
	victim.Start(t)
}
