package queue

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// counts serves n slots one after the other, as a busy executor frees them, from
// tenants that always have more work.
func counts(r *ring, n int) map[string]int {
	got := map[string]int{}
	for range n {
		for _, s := range r.take(1) {
			got[s.tenant] += s.count
			r.done(s, s.count, 0)
		}
	}
	return got
}

func TestRingServesTenantsInTurn(t *testing.T) {
	t.Parallel()
	r := newRing(nil)
	for _, tenant := range []string{"a", "b", "c"} {
		r.mark(tenant, 0)
	}
	require.Equal(t, map[string]int{"a": 100, "b": 100, "c": 100}, counts(r, 300))
}

func TestRingServesByWeight(t *testing.T) {
	t.Parallel()
	weights := map[string]int{"gold": 4, "silver": 2, "none": 0, "absurd": -5}
	r := newRing(func(tenant string) int { return weights[tenant] })
	for tenant := range weights {
		r.mark(tenant, 0)
	}
	got := counts(r, 800)
	require.InDelta(t, 400, got["gold"], 2)
	require.InDelta(t, 200, got["silver"], 2)
	require.InDelta(t, 100, got["none"], 2, "a weight below one counts as one")
	require.InDelta(t, 100, got["absurd"], 2)
}

func TestRingSharesManySlotsByWeightToo(t *testing.T) {
	t.Parallel()
	r := newRing(func(tenant string) int { return map[string]int{"heavy": 3}[tenant] })
	r.mark("heavy", 0)
	r.mark("light", 0)
	got := map[string]int{}
	for _, s := range r.take(40) {
		got[s.tenant] = s.count
	}
	require.Equal(t, map[string]int{"heavy": 30, "light": 10}, got)
}

func TestRingNeverGivesOutMoreThanAsked(t *testing.T) {
	t.Parallel()
	r := newRing(nil)
	for i := range 7 {
		r.mark(fmt.Sprint("tenant-", i), 0)
	}
	for n := range 20 {
		total := 0
		shares := r.take(n)
		for _, s := range shares {
			total += s.count
		}
		require.Equal(t, n, total)
		others := r.take(20)
		require.Len(t, append(others, shares...), 7, "a tenant that is being asked is not asked again")
		for _, s := range append(others, shares...) {
			r.done(s, s.count, 0)
		}
	}
}

func TestRingForgetsATenantThatHadLess(t *testing.T) {
	t.Parallel()
	r := newRing(nil)
	r.mark("a", 0)
	s := r.take(10)[0]
	r.done(s, 3, 0)
	require.Empty(t, r.take(10))
	require.Empty(t, r.tenants, "cold tenants take no memory")
}

func TestRingKeepsATenantThatWasMarkedWhileAsked(t *testing.T) {
	t.Parallel()
	r := newRing(nil)
	r.mark("a", 0)
	s := r.take(10)[0]
	r.mark("a", 0)
	r.done(s, 0, 0)
	require.Len(t, r.take(10), 1, "the mark may tell of work that came after the answer")
}

func TestRingPutsNoNewcomerBeforeAllOthersForLong(t *testing.T) {
	t.Parallel()
	r := newRing(nil)
	r.mark("old", 0)
	counts(r, 1000)
	r.mark("new", 0)
	require.InDelta(t, 50, counts(r, 100)["old"], 1)
}

func TestRingServesALateTenantAtOnce(t *testing.T) {
	t.Parallel()
	r := newRing(nil)
	r.mark("busy", 0)
	counts(r, 10_000)
	r.mark("late", 0)
	first, second := r.take(1)[0], r.take(1)
	if first.tenant != "late" {
		require.Equal(t, "late", second[0].tenant)
	}
}

func TestRingChargesOnlyForWhatCame(t *testing.T) {
	t.Parallel()
	r := newRing(nil)
	r.mark("a", 0)
	r.mark("b", 0)
	for _, s := range r.take(100) {
		r.mark(s.tenant, 0)
		got := 0
		if s.tenant == "a" {
			got = s.count
		}
		r.done(s, got, 0)
	}
	require.Equal(t, map[string]int{"b": 50}, counts(r, 50), "b had nothing and is owed fifty")
}

func TestRingAsksAgainForWhatAWakeUpToldOf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRing(nil)
		r.mark("a", 7)
		for range retryDelays {
			s := r.take(10)[0]
			r.done(s, 1, 6)
			require.Empty(t, r.take(10))
			time.Sleep(time.Second)
			<-r.changed
		}
		r.done(r.take(10)[0], 0, 0)
		time.Sleep(time.Second)
		require.Empty(t, r.take(10), "another executor has it")
		require.Empty(t, r.tenants)
	})
}

func TestRingAsksNotAgainWhenEverythingCame(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRing(nil)
		r.mark("a", 7)
		r.done(r.take(10)[0], 1, 7)
		time.Sleep(time.Second)
		require.Empty(t, r.take(10))
		require.Empty(t, r.tenants)
	})
}

func TestRingTakesAWakeUpWhileItWaitsToAskAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRing(nil)
		r.mark("a", 7)
		r.done(r.take(10)[0], 0, 0)
		r.mark("a", 8)
		s := r.take(10)
		require.Len(t, s, 1, "at once")
		time.Sleep(time.Second)
		require.Empty(t, r.take(10), "the old timer doesn't give it out twice")
		r.done(s[0], 2, 8)
		require.Empty(t, r.tenants)
	})
}
