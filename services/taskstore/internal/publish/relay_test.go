package publish

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/lifecycle/lifecycletest"
	"github.com/errandhq/errand/pkg/testkit"
	"github.com/stretchr/testify/require"
)

// clock is a clock that a test can move.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time             { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) advance(by time.Duration)   { c.ahead.Add(int64(by)) }
func (c *cluster) newRelay(k *clock) *Relay { return c.newRelayNamed(k, "relay-1") }

func (c *cluster) newRelayNamed(k *clock, holder string) *Relay {
	return NewRelay(RelayOptions{
		Holder: holder, Outbox: c.engine, Roles: c.engine, Events: c.events, Now: k.now, Logger: testkit.Logger(c.t),
	})
}

// died is a publisher that was registered and then committed without publishing.
func (c *cluster) died(name string) *Publisher {
	c.t.Helper()
	p := c.newPublisher(name)
	require.NoError(c.t, p.beat(c.t.Context()))
	return p
}

func TestRelayKeepsTheServiceContract(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	lifecycletest.Stress(t, func(*testing.T) lifecycle.Service { return c.newRelay(&clock{}) })
}

func TestWhatADeadPublisherLeftIsPublishedInOrderAndOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	k := &clock{}
	dead := c.died("store-1")
	tasks := []*task{newTask(), newTask()}
	live := c.read(tasks...)
	for range 400 {
		c.commit(dead, tasks[0], 1)
		c.commit(dead, tasks[1], 1)
	}
	relays := []*Relay{c.newRelay(k), c.newRelayNamed(k, "relay-2")}
	for _, r := range relays {
		require.NoError(t, r.Start(t.Context()))
		t.Cleanup(func() { require.NoError(t, r.Stop(context.Background())) })
	}
	more, err := relays[0].relay(t.Context())
	require.NoError(t, err)
	require.False(t, more)
	require.Empty(t, c.stored(), "it may still live")

	k.advance(staleAfter + time.Second)
	c.requireStored(tasks...)
	for _, task := range tasks {
		require.Eventually(t, func() bool { return len(live.of(task)) == 400 }, patience, soon)
		require.IsIncreasing(t, live.of(task))
	}
	c.requireRecorded("store-1", 800)

	k.advance(forgetAfter)
	c.requireRecorded("store-1", -1)
}

func TestAPausedPublisherGoesOnAfterARelayHasTakenOver(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	k := &clock{}
	k.advance(staleAfter + time.Second)
	paused := c.died("store-1")
	task := newTask()
	c.commit(paused, task, 3)
	r := c.newRelay(k)
	_, err := r.relay(t.Context())
	require.NoError(t, err)
	c.requireStored(task)

	c.start(paused)
	c.commit(paused, task, 1)
	c.requireStored(task)
	c.requireRecorded("store-1", 4)
}
