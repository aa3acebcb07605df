package sequence_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	"github.com/errandhq/errand/services/notifier/internal/sequence"
)

func event(version int64) *eventv1.Event {
	return &eventv1.Event{
		TaskId:  "t",
		Version: version,
		Kind:    &eventv1.Event_StatusUpdate{StatusUpdate: &a2apb.TaskStatusUpdateEvent{TaskId: "t"}},
	}
}

// take hands out all that is ready.
func take(s *sequence.Sequence) (versions []int64) {
	for e := s.Next(); e != nil; e = s.Next() {
		versions = append(versions, e.GetVersion())
	}
	return versions
}

func TestEventsInOrderAreReadyAtOnce(t *testing.T) {
	t.Parallel()
	var s sequence.Sequence
	for v := int64(1); v <= 3; v++ {
		s.Offer(event(v))
		require.Equal(t, []int64{v}, take(&s))
		require.False(t, s.Missing())
	}
	require.Zero(t, s.Size())
}

func TestHoleHoldsBackWhatFollows(t *testing.T) {
	t.Parallel()
	var s sequence.Sequence
	s.Offer(event(2))
	s.Offer(event(3))
	require.False(t, s.Ready())
	require.True(t, s.Missing())

	s.Offer(event(1))
	require.False(t, s.Missing())
	require.Equal(t, []int64{1, 2, 3}, take(&s))
}

func TestRepeatsAreDropped(t *testing.T) {
	t.Parallel()
	var s sequence.Sequence
	s.Offer(event(2))
	s.Offer(event(2))
	s.Offer(event(1))
	require.Equal(t, []int64{1, 2}, take(&s))
	s.Offer(event(1))
	s.Offer(event(2))
	require.Empty(t, take(&s))
	require.Zero(t, s.Size())
}

func TestEventWithoutKindIsMissing(t *testing.T) {
	t.Parallel()
	var s sequence.Sequence
	s.Offer(&eventv1.Event{TaskId: "t", Version: 1})
	require.False(t, s.Ready())
	require.True(t, s.Missing())
	s.Offer(event(1))
	require.Equal(t, []int64{1}, take(&s))
}

func TestLostTailIsMissingOnceItsVersionIsKnown(t *testing.T) {
	t.Parallel()
	var s sequence.Sequence
	s.Skip(4)
	require.False(t, s.Missing())
	s.Learn(4)
	require.False(t, s.Missing())
	s.Learn(5)
	require.True(t, s.Missing())
}

func TestSkipDropsWhatLiesBeforeIt(t *testing.T) {
	t.Parallel()
	var s sequence.Sequence
	for _, v := range []int64{2, 3, 5} {
		s.Offer(event(v))
	}
	s.Skip(3)
	require.EqualValues(t, 3, s.Position())
	require.True(t, s.Missing())
	s.Skip(2)
	require.EqualValues(t, 3, s.Position(), "a sequence never goes back")
	s.Offer(event(4))
	require.Equal(t, []int64{4, 5}, take(&s))
}

func TestForgottenEventsAreMissing(t *testing.T) {
	t.Parallel()
	var s sequence.Sequence
	s.Offer(event(1))
	require.Positive(t, s.Size())
	s.Forget()
	require.Zero(t, s.Size())
	require.False(t, s.Ready())
	require.True(t, s.Missing())
}

// play offers versions 1…n in a random order with losses and repeats, and reads
// the log wherever something is missing, as the holder of a sequence does.
func play(t *testing.T, rnd *rand.Rand, start, n int64) {
	t.Helper()
	var s sequence.Sequence
	s.Skip(start)
	var got []int64
	for _, v := range feed(rnd, n) {
		s.Offer(event(v))
		if rnd.IntN(8) == 0 {
			s.Forget()
		}
		if rnd.IntN(4) == 0 {
			got = append(got, take(&s)...)
		}
		if s.Missing() && rnd.IntN(4) == 0 {
			readLog(rnd, &s, n)
		}
	}
	s.Learn(n)
	for got = append(got, take(&s)...); s.Missing(); got = append(got, take(&s)...) {
		readLog(rnd, &s, n)
	}

	want := make([]int64, 0, n)
	for v := start + 1; v <= n; v++ {
		want = append(want, v)
	}
	require.Equal(t, want, append([]int64{}, got...))
	require.Zero(t, s.Size())
}

func feed(rnd *rand.Rand, n int64) (versions []int64) {
	for v := int64(1); v <= n; v++ {
		for range rnd.IntN(3) {
			versions = append(versions, v)
		}
	}
	window := 1 + rnd.IntN(8)
	for i := range versions {
		j := min(i+rnd.IntN(window), len(versions)-1)
		versions[i], versions[j] = versions[j], versions[i]
	}
	return versions
}

func readLog(rnd *rand.Rand, s *sequence.Sequence, n int64) {
	after := s.Position()
	for v := after + 1; v <= min(n, after+1+rnd.Int64N(4)); v++ {
		s.Offer(event(v))
	}
}

func TestAnyFeedGivesEachVersionOnceInOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		n := rnd.Int64N(40)
		play(t, rnd, rnd.Int64N(n+1), n)
	}
}

func FuzzSequence(f *testing.F) {
	f.Add(uint64(1), uint64(2), uint8(20), uint8(0))
	f.Fuzz(func(t *testing.T, a, b uint64, n, start uint8) {
		play(t, rand.New(rand.NewPCG(a, b)), int64(min(start, n)), int64(n))
	})
}
