package run

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/errandhq/errand/services/e2e/internal/chaos/agents"
	"github.com/errandhq/errand/services/e2e/internal/chaos/schedule"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What a run prints first, and what it leaves in its folder, is a schedule for
// another run that takes the same steps.
func TestWhatARunAnnouncesIsItsSchedule(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	dealt := schedule.Deal(schedule.Config{
		Seed: 7, Duration: 20 * time.Minute, Pace: schedule.Pace, Lease: agents.Lease, Processes: processes(),
	})
	r := &run{Config: Config{Seed: 7, Duration: 20 * time.Minute, Schedule: dealt, Dir: t.TempDir(), Out: &out}}
	require.NoError(t, r.announce())
	printed, err := schedule.Parse(&out)
	require.NoError(t, err)
	require.Equal(t, dealt, printed)
	file, err := os.Open(r.path("schedule"))
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	left, err := schedule.Parse(file)
	require.NoError(t, err)
	require.Equal(t, dealt, left)
}
