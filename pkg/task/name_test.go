package task_test

import (
	"strings"
	"testing"

	"github.com/errandhq/errand/pkg/task"
	"github.com/stretchr/testify/require"
)

func TestNamesAreWhatSubjectsAndURLsCarry(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "acme-2", "0", strings.Repeat("a", task.MaxName)} {
		require.True(t, task.ValidName(name), "%q", name)
	}
	for _, name := range []string{"", "A", "a.b", "a_b", "*", ">", "a b", "ä", "a\x00", strings.Repeat("a", task.MaxName+1)} {
		require.False(t, task.ValidName(name), "%q", name)
	}
}
