package conformance_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// random is a source whose seed stands in the test's log. ERRAND_SEED repeats a
// run.
func random(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if given := os.Getenv("ERRAND_SEED"); given != "" {
		var err error
		seed, err = strconv.ParseUint(given, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("ERRAND_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// pause lets a moment pass: between two looks at the same, or one whose length is
// the point of the test.
func pause(t *testing.T, milliseconds int) {
	t.Helper()
	select {
	case <-time.After(time.Duration(milliseconds) * time.Millisecond):
	case <-t.Context().Done():
	}
}
