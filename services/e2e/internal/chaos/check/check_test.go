package check_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/services/e2e/internal/chaos/check"
)

func TestAHealthyRunHasNoViolations(t *testing.T) {
	t.Parallel()
	j, written, store := record(t, 8*time.Second)
	live := check.Check(t.Context(), config(j, written, store))
	t.Log(report(t, live))
	require.Empty(t, live.Found())
}
