package lifecycle_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/lifecycle/lifecycletest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func untilStopped(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func TestLoopKeepsTheServiceContract(t *testing.T) {
	t.Parallel()
	lifecycletest.Stress(t, func(*testing.T) lifecycle.Service { return lifecycle.NewLoop(untilStopped) })
}

func TestGroupKeepsTheServiceContract(t *testing.T) {
	t.Parallel()
	lifecycletest.Stress(t, func(*testing.T) lifecycle.Service {
		g := newGroup()
		g.Add("first", lifecycle.NewLoop(untilStopped))
		g.Add("second", lifecycle.NewLoop(untilStopped))
		return g
	})
}

func TestLoopIsStoppedWithItsOwnCauseAndKeepsTheValuesOfStart(t *testing.T) {
	t.Parallel()
	type key struct{}
	var cause error
	var value any
	loop := lifecycle.NewLoop(func(ctx context.Context) error {
		<-ctx.Done()
		cause, value = context.Cause(ctx), ctx.Value(key{})
		return ctx.Err()
	})
	startCtx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "kept"))
	require.NoError(t, loop.Start(startCtx))
	cancel()
	require.NoError(t, loop.Ready(), "the end of the start's context must not end the loop")
	require.NoError(t, loop.Stop(t.Context()))
	require.ErrorIs(t, cause, lifecycle.ErrStopped)
	require.Equal(t, "kept", value)
}

func TestLoopStopWaitsNoLongerThanItsContext(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	loop := lifecycle.NewLoop(func(context.Context) error {
		<-release
		return nil
	})
	require.NoError(t, loop.Start(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, loop.Stop(ctx), context.Canceled)
	close(release)
	require.NoError(t, loop.Stop(t.Context()))
}

func TestLoopThatReturnsByItselfIsAFailure(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, result := range map[string]error{"with an error": broken, "without one": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			loop := lifecycle.NewLoop(func(context.Context) error { return result })
			require.NoError(t, loop.Start(t.Context()))
			<-loop.Done()
			require.Error(t, loop.Err())
			require.Error(t, loop.Ready())
			if result != nil {
				require.ErrorIs(t, loop.Err(), result)
			}
		})
	}
}

// recorder is a service that writes down what happens to it.
type recorder struct {
	name     string
	log      *[]string
	startErr error
	stopErr  error
}

func (r recorder) Start(context.Context) error {
	*r.log = append(*r.log, "start "+r.name)
	return r.startErr
}

func (r recorder) Stop(context.Context) error {
	*r.log = append(*r.log, "stop "+r.name)
	return r.stopErr
}

func (r recorder) Ready() error { return nil }

func newGroup() *lifecycle.Group { return lifecycle.NewGroup(slog.New(slog.DiscardHandler)) }

func TestGroupStartsInOrderAndStopsInReverse(t *testing.T) {
	t.Parallel()
	var log []string
	g := newGroup()
	for _, name := range []string{"a", "b", "c"} {
		g.Add(name, recorder{name: name, log: &log})
	}
	require.ErrorIs(t, g.Ready(), lifecycle.ErrNotRunning)
	require.NoError(t, g.Start(t.Context()))
	require.NoError(t, g.Ready())
	require.NoError(t, g.Stop(t.Context()))
	require.ErrorIs(t, g.Ready(), lifecycle.ErrStopped)
	require.Equal(t, []string{"start a", "start b", "start c", "stop c", "stop b", "stop a"}, log)
}

func TestGroupThatFailsToStartClosesWhatWasOpen(t *testing.T) {
	t.Parallel()
	broken := errors.New("no such host")
	var log []string
	g := newGroup()
	g.AddCloser("pool", func(context.Context) error {
		log = append(log, "close pool")
		return nil
	})
	g.Add("a", recorder{name: "a", log: &log, startErr: broken})
	g.Add("b", recorder{name: "b", log: &log})
	err := g.Run(t.Context(), time.Minute)
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "start a")
	require.Equal(t, []string{"start a", "stop b", "stop a", "close pool"}, log)
}

func TestGroupStopsAllPartsAlsoWhenOneFailsToStop(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	var log []string
	g := newGroup()
	g.Add("a", recorder{name: "a", log: &log})
	g.Add("b", recorder{name: "b", log: &log, stopErr: broken})
	require.NoError(t, g.Start(t.Context()))
	require.ErrorIs(t, g.Stop(t.Context()), broken)
	require.ErrorIs(t, g.Stop(t.Context()), broken, "a second stop tells the same")
	require.Equal(t, []string{"start a", "start b", "stop b", "stop a"}, log)
}

func TestGroupEndsWhenOnePartEnds(t *testing.T) {
	t.Parallel()
	broken := errors.New("listener closed")
	fail := make(chan struct{})
	healthy := lifecycle.NewLoop(untilStopped)
	g := newGroup()
	g.Add("healthy", healthy)
	g.Add("failing", lifecycle.NewLoop(func(context.Context) error {
		<-fail
		return broken
	}))
	result := make(chan error)
	go func() { result <- g.Run(t.Context(), time.Minute) }()
	close(fail)
	err := <-result
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "failing")
	require.ErrorIs(t, healthy.Ready(), lifecycle.ErrStopped, "the other part is stopped too")
}

func TestGroupRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	loop := lifecycle.NewLoop(func(ctx context.Context) error {
		cancel()
		return untilStopped(ctx)
	})
	g := newGroup()
	g.Add("loop", loop)
	require.NoError(t, g.Run(ctx, time.Minute))
	require.ErrorIs(t, loop.Ready(), lifecycle.ErrStopped)
}

func TestGroupReadyNamesThePartThatIsNot(t *testing.T) {
	t.Parallel()
	g := newGroup()
	ended := lifecycle.NewLoop(untilStopped)
	g.AddCloser("pool", func(context.Context) error { return nil })
	g.Add("relay", notReady{ended})
	require.NoError(t, g.Start(t.Context()))
	require.ErrorContains(t, g.Ready(), "relay: the database is away")
	require.NoError(t, g.Stop(t.Context()))
}

type notReady struct{ lifecycle.Service }

func (notReady) Ready() error { return errors.New("the database is away") }
