package testkit

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOnlyOldDatabasesOfOursAreLeftovers(t *testing.T) {
	t.Parallel()
	now := time.Now()
	old := now.Add(-3 * time.Hour).Unix()
	require.True(t, isLeftover(fmt.Sprintf("errand_test_%d_abc", old), now))
	require.True(t, isLeftover(fmt.Sprintf("errand_template_%d_abc", old), now))
	require.False(t, isLeftover(databaseName("test"), now), "one of a run that is still going on")
	for _, name := range []string{"errand", "errand_prod", "errand_test_x_abc", fmt.Sprintf("errand_prod_%d_abc", old), "postgres"} {
		require.False(t, isLeftover(name, now), name)
	}
}
