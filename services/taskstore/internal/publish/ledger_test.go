package publish

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheMarkStopsBelowTheFirstNumberThatIsNotSettled(t *testing.T) {
	t.Parallel()
	var l ledger
	require.Zero(t, l.mark())
	a, b, c := l.take(2), l.take(1), l.take(3)
	require.Equal(t, []int64{1, 3, 4}, []int64{a.first, b.first, c.first})
	require.Zero(t, l.mark())
	l.settle(b)
	require.Zero(t, l.mark())
	l.settle(a)
	require.Equal(t, int64(3), l.mark())
	l.settle(c)
	require.Equal(t, int64(6), l.mark())
}

func TestTheOutboxIsCompleteBelowTheFirstRunningTransaction(t *testing.T) {
	t.Parallel()
	var l ledger
	a, b := l.take(1), l.take(1)
	require.Zero(t, l.quiet())
	a.running = false // committed or in doubt
	require.Equal(t, int64(1), l.quiet())
	require.Zero(t, l.mark())
	l.settle(b)
	require.Equal(t, int64(2), l.quiet())
}
