// Package crash_test kills `errand dev` under load, again and again, and then
// looks whether it kept its word: every message that was accepted became one
// task, each task ended once, and no version is missing.
//
// ERRAND_CRASHES sets how often it is killed, ERRAND_SEED repeats a run (the
// load and the moments of death, as far as a random schedule allows).
package crash_test

import (
	_ "embed"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/errandhq/errand/pkg/testkit"
	"github.com/errandhq/errand/services/e2e/internal/harness"
)

//go:embed testdata/agents.yaml
var agentsFile []byte

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

func setting(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	given := os.Getenv(name)
	if given == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(given, 10, 64)
	require.NoError(t, err, name)
	return n
}

func TestNothingThatWasAcceptedIsLostOrDoubledByKills(t *testing.T) {
	t.Parallel()
	crashes := setting(t, "ERRAND_CRASHES", 5)
	seed := setting(t, "ERRAND_SEED", rand.Uint64())
	t.Logf("ERRAND_CRASHES=%d ERRAND_SEED=%d", crashes, seed)
	binary := harness.BuildErrand(t)
	file := filepath.Join(t.TempDir(), "agents.yaml")
	require.NoError(t, os.WriteFile(file, agentsFile, 0o600))

	for engine, arguments := range map[string]func(t *testing.T) []string{
		"sqlite":   func(*testing.T) []string { return nil },
		"postgres": func(t *testing.T) []string { return []string{"--database-url", testkit.Postgres(t)} },
	} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			args := append(arguments(t), "--data-dir", t.TempDir(), "--agents", file)
			p := harness.StartDev(t, binary, args...)
			dice := rand.New(rand.NewPCG(seed, 0))
			load := startLoad(t, p.Client, seed)
			for range crashes {
				<-time.After(time.Duration(100+dice.IntN(1200)) * time.Millisecond)
				p.Kill(t)
				p.Start(t)
			}
			messages := load.stop()
			t.Logf("%d messages", len(messages))
			require.Greater(t, len(messages), int(crashes)*5, "too little load to mean anything")
			check(t, p.Client, messages)
		})
	}
}
