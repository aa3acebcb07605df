package load_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/services/gateway/internal/load"
)

func requireRetryable(t *testing.T, err error) {
	t.Helper()
	require.Equal(t, a2aerr.ReasonUnavailable, a2aerr.From(err).Reason)
	require.Positive(t, a2aerr.From(err).RetryAfter())
}

func TestRequestsOverTheLimitAreRefusedUntilOneLeavesOrWaits(t *testing.T) {
	t.Parallel()
	l := load.New(2, 100)
	_, leave, err := l.Enter(t.Context())
	require.NoError(t, err)
	waiting, leaveToo, err := l.Enter(t.Context())
	require.NoError(t, err)
	enter := func() error {
		_, leave, err := l.Enter(t.Context())
		leave()
		return err
	}
	requireRetryable(t, enter())
	leave()
	leave() // counts once
	require.NoError(t, enter())
	_, _, err = l.Enter(t.Context())
	require.NoError(t, err)
	requireRetryable(t, enter())
	load.Wait(waiting)
	require.NoError(t, enter())
	leaveToo()
	_, _, err = l.Enter(t.Context())
	require.NoError(t, err)
	requireRetryable(t, enter())
}

func TestBodiesOverTheLimitAreRefusedUntilOthersAreGivenBack(t *testing.T) {
	t.Parallel()
	l := load.New(1, 100)
	first, leave, err := l.Enter(t.Context())
	require.NoError(t, err)
	require.NoError(t, load.Hold(first, 60))
	second, leaveSecond, err := l.Enter(t.Context())
	requireRetryable(t, err)
	require.NoError(t, load.Hold(second, 40), "a request that is refused may be read for its answer")
	requireRetryable(t, load.Hold(first, 1))
	leaveSecond()
	require.NoError(t, load.Hold(first, 40))
	load.Wait(first)
	leave()
	third, leave, err := l.Enter(t.Context())
	require.NoError(t, err)
	require.NoError(t, load.Hold(third, 100))
	leave()
}

func TestAContextWithoutARequestHoldsNothing(t *testing.T) {
	t.Parallel()
	require.NoError(t, load.Hold(context.Background(), 1<<40))
	load.Wait(context.Background())
}

func TestAnswersCountWhileTheyAreWritten(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	l := load.New(10, mib)
	first, leave, err := l.Enter(t.Context())
	require.NoError(t, err)
	load.Wait(first)
	done, err := load.Answer(first, mib-100)
	require.NoError(t, err)
	second, leaveSecond, err := l.Enter(t.Context())
	require.NoError(t, err)
	_, err = load.Answer(second, 200_000)
	requireRetryable(t, err)
	_, err = load.Answer(second, 1000)
	require.NoError(t, err, "small answers are free")
	done()
	done() // counts once
	_, err = load.Answer(second, 100*mib)
	require.NoError(t, err, "alone, an answer may be larger than the limit")
	_, err = load.Answer(first, 200_000)
	requireRetryable(t, err)
	leaveSecond()
	_, err = load.Answer(first, 200_000)
	require.NoError(t, err)
	leave()
	third, leave, err := l.Enter(t.Context())
	require.NoError(t, err)
	require.NoError(t, load.Hold(third, mib))
	_, err = load.Answer(third, mib)
	require.NoError(t, err, "the body is not needed any more")
	leave()
}
