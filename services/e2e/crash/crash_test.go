// Package crash_test kills processes under load, again and again, and then looks
// whether Errand kept its word: every message that was accepted became one task
// or has one answer, each task ended once, no version is missing, streams that
// were cut went on, and no handler ran without need.
//
// ERRAND_CRASHES sets how often something is killed, ERRAND_SEED repeats a run
// (the load and the moments of death, as far as a random schedule allows).
package crash_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/errandhq/errand/pkg/testkit"
	"github.com/errandhq/errand/services/e2e/internal/harness"
)

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
	p := build(t)
	for name, start := range map[string]func(t *testing.T) *fleet{
		"sqlite":   func(t *testing.T) *fleet { return p.start(t, 1) },
		"postgres": func(t *testing.T) *fleet { return p.start(t, 1, "--database-url", testkit.Postgres(t)) },
		"two nodes": func(t *testing.T) *fleet {
			return p.start(t, 2, "--database-url", testkit.Postgres(t), "--nats-url", harness.StartNATS(t))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t)
			l := startLoad(t, f, seed)
			dice := rand.New(rand.NewPCG(seed, 0))
			for range crashes {
				<-time.After(time.Duration(100+dice.IntN(1200)) * time.Millisecond)
				f.crash(t, dice)
			}
			promises := l.stop()
			t.Logf("%d promises", len(promises))
			require.Greater(t, len(promises), int(crashes)*3, "too little load to mean anything")
			check(t, f, promises)
		})
	}
}
