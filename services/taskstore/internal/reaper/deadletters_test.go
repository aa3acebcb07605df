package reaper

import (
	"testing"
	"time"

	"github.com/errandhq/errand/pkg/task"
	"github.com/stretchr/testify/require"
)

func TestADeadLetterIsKeptForThirtyDaysAndItsTaskForLonger(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	id := c.accept(1)[0]
	for range maxAttempts {
		require.NotNil(t, c.claim(id).GetClaim())
		c.clock.advance(lease + time.Second)
		c.do(c.expireLeases)
	}
	c.clock.advance(30*24*time.Hour - time.Minute)
	c.do(c.purgeDeadLetters)
	require.Len(t, c.deadLetters(), 1)
	c.clock.advance(2 * time.Minute)
	c.do(c.purgeDeadLetters)
	require.Empty(t, c.deadLetters())
	require.Equal(t, task.Failed, c.task(id).State)
}
