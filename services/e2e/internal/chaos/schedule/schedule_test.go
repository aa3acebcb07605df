package schedule_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/services/e2e/internal/chaos/schedule"
)

func config(seed uint64, d time.Duration) schedule.Config {
	return schedule.Config{
		Seed: seed, Duration: d, Pace: schedule.Pace, Lease: 3 * time.Second,
		Processes: []string{
			"executor-0", "executor-1", "gateway-0", "gateway-1", "nats", "notifier-0", "notifier-1", "postgres", "taskstore-0", "taskstore-1",
		},
	}
}

const seeds = 40

func TestASeedDecidesEverything(t *testing.T) {
	t.Parallel()
	for seed := range uint64(seeds) {
		first := schedule.Deal(config(seed, 5*time.Minute))
		require.Equal(t, first, schedule.Deal(config(seed, 5*time.Minute)))
		require.NotEqual(t, first, schedule.Deal(config(seed+1, 5*time.Minute)))
	}
}

func TestTwentyMinutesHaveTwoHundredKillsOrPausesAndAllKindsOnAllTargets(t *testing.T) {
	t.Parallel()
	for seed := range uint64(seeds) {
		c := config(seed, 20*time.Minute)
		kinds, targets := map[schedule.Kind]int{}, map[string]int{}
		for _, step := range schedule.Deal(c) {
			kinds[step.Kind]++
			targets[step.Target]++
			require.True(t, step.Kind != schedule.Wipe || step.Target == "nats")
		}
		require.GreaterOrEqual(t, kinds[schedule.Kill]+kinds[schedule.Pause], 200)
		require.Len(t, kinds, 6)
		require.Len(t, targets, len(c.Processes))
		require.Less(t, targets["postgres"], targets["nats"])
		require.Less(t, targets["nats"], targets["executor-0"])
	}
}

func TestNothingIsAwayForLong(t *testing.T) {
	t.Parallel()
	for seed := range uint64(seeds) {
		c := config(seed, 5*time.Minute)
		s := schedule.Deal(c)
		for i, step := range s {
			require.LessOrEqual(t, step.End()+schedule.Recovery, c.Duration, "a quiet end")
			if schedule.Group(step.Target) == step.Target {
				require.Less(t, step.For, schedule.Outage)
			}
			for _, other := range s[:i] {
				require.LessOrEqual(t, other.At, step.At)
				if other.Target == step.Target {
					require.LessOrEqual(t, other.End()+schedule.Recovery, step.At)
				} else if schedule.Group(other.Target) == schedule.Group(step.Target) {
					require.LessOrEqual(t, min(other.End(), step.End())-step.At, schedule.Outage-schedule.Recovery)
				}
			}
		}
	}
}

func TestSomePausesOutlastALease(t *testing.T) {
	t.Parallel()
	c := config(1, 20*time.Minute)
	short, long := 0, 0
	for _, step := range schedule.Deal(c) {
		switch {
		case step.Kind != schedule.Pause:
		case step.For > c.Lease:
			long++
		default:
			short++
		}
	}
	require.Greater(t, short, 20)
	require.Greater(t, long, 20)
}

func FuzzWhatIsPrintedIsReadBack(f *testing.F) {
	f.Add(uint64(1), uint16(60))
	f.Fuzz(func(t *testing.T, seed uint64, seconds uint16) {
		s := schedule.Deal(config(seed, time.Duration(seconds)*time.Second))
		require.Equal(t, s, reread(t, s))
	})
}

func FuzzWhatIsReadIsPrintedTheSame(f *testing.F) {
	f.Add("# seed 1\n\n  1.5s kill gateway-0 200ms\n1m0.001s\treset nats 1h")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := schedule.Parse(strings.NewReader(text))
		if err == nil {
			require.Equal(t, s, reread(t, s))
		}
	})
}

func reread(t *testing.T, s schedule.Schedule) schedule.Schedule {
	t.Helper()
	var text bytes.Buffer
	require.NoError(t, s.Write(&text))
	again, err := schedule.Parse(&text)
	require.NoError(t, err)
	return again
}

func TestParse_NamesTheLineThatIsWrong(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"1s kill gateway-0", "1s hit gateway-0 1s", "1 kill gateway-0 1s", "1s kill gateway-0 x", "1s kill gateway-0 -1s", "0s kill gateway-0 1s",
	} {
		_, err := schedule.Parse(strings.NewReader("500ms kill nats 1s\n" + line))
		require.ErrorContains(t, err, "line 2", line)
	}
}
