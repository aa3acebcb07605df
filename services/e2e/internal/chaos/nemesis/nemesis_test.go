package nemesis_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/errandhq/errand/services/e2e/internal/chaos/journal"
	"github.com/errandhq/errand/services/e2e/internal/chaos/nemesis"
	"github.com/errandhq/errand/services/e2e/internal/chaos/schedule"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster writes down what befalls it, and when.
type cluster struct {
	begun     time.Time
	processes map[string]*process

	mu   sync.Mutex
	done []string
}

func newCluster(names ...string) *cluster {
	c := &cluster{begun: time.Now(), processes: map[string]*process{}}
	for _, name := range names {
		c.processes[name] = &process{cluster: c, name: name, ended: make(chan struct{})}
	}
	return c
}

func (c *cluster) note(what, target string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = append(c.done, fmt.Sprintf("%s %s %s", time.Since(c.begun), what, target))
}

func (c *cluster) Cut(name string)   { c.note("cut", name) }
func (c *cluster) Heal(name string)  { c.note("heal", name) }
func (c *cluster) Reset(name string) { c.note("reset", name) }

func (c *cluster) WipeNATS(ctx context.Context) error {
	c.note("wipe", "nats")
	return c.processes["nats"].Start(ctx)
}

// process is one that a test can end, and keep from starting.
type process struct {
	cluster *cluster
	name    string
	broken  error

	mu    sync.Mutex
	ended chan struct{}
}

func (p *process) Name() string { return p.name }
func (p *process) Log() string  { return p.name + ".log" }

func (p *process) Ended() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

func (p *process) end() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.ended)
	return nil
}

func (p *process) Start(context.Context) error {
	p.cluster.note("start", p.name)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = make(chan struct{})
	return nil
}

func (p *process) Ready(context.Context) error { return p.broken }

func (p *process) Kill(context.Context) error {
	p.cluster.note("kill", p.name)
	return p.end()
}

func (p *process) Terminate(context.Context) error {
	p.cluster.note("terminate", p.name)
	return p.end()
}

func (p *process) Pause(context.Context) error {
	p.cluster.note("pause", p.name)
	return nil
}

func (p *process) Continue(context.Context) error {
	p.cluster.note("continue", p.name)
	return nil
}

func newNemesis(c *cluster, text string) (*nemesis.Nemesis, error) {
	s, err := schedule.Parse(strings.NewReader(text))
	if err != nil {
		return nil, err //nolint:wrapcheck // of a test
	}
	var all []nemesis.Process
	for _, p := range c.processes {
		all = append(all, p)
	}
	return nemesis.New(c, all, s, slog.New(slog.DiscardHandler)) //nolint:wrapcheck // what is tested
}

func TestEachStepIsTakenAtItsTimeAndUndone(t *testing.T) {
	t.Parallel()
	for step, want := range map[string][]string{
		"1s kill a 2s":    {"1s kill a", "3s start a"},
		"1s restart a 2s": {"1s terminate a", "3s start a"},
		"1s pause a 2s":   {"1s pause a", "3s continue a"},
		"1s cut a 2s":     {"1s cut a", "3s heal a"},
		"1s reset a 2s":   {"1s cut a", "3s reset a", "3s heal a"},
		"1s wipe nats 2s": {"1s kill nats", "3s wipe nats", "3s start nats"},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster("a", "nats")
			n, err := newNemesis(c, step)
			require.NoError(t, err)
			n.Run(t.Context())
			require.Equal(t, want, c.done, step)
			require.Empty(t, n.Faults())
			kind, target := strings.Fields(step)[1], strings.Fields(step)[2]
			if kind == "reset" {
				kind = "cut"
			}
			require.Equal(t, []journal.Interruption{{
				Begun: c.begun.Add(time.Second), Ended: c.begun.Add(3 * time.Second), Kind: kind, Target: target,
			}}, n.Interruptions())
		})
	}
}

func TestStepsOnOneProcessWaitForEachOtherAndOthersDoNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("a", "b")
		n, err := newNemesis(c, "1s kill a 5s\n2s pause a 1s\n3s kill b 1s")
		require.NoError(t, err)
		n.Run(t.Context())
		require.Equal(t, []string{"1s kill a", "3s kill b", "4s start b", "6s start a", "6s pause a", "7s continue a"}, c.done)
	})
}

func TestWhatIsStruckAtTheEndIsHelpedUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("a", "b")
		n, err := newNemesis(c, "1s pause a 1m\n10s kill b 1s")
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		n.Run(ctx)
		require.Equal(t, []string{"1s pause a", "5s continue a"}, c.done)
	})
}

func TestAProcessThatEndsByItselfIsAFaultAndIsStartedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("a")
		n, err := newNemesis(c, "1s kill a 2s")
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var watching sync.WaitGroup
		watching.Go(func() { n.Watch(ctx) })
		n.Run(ctx)
		require.Empty(t, n.Faults(), "what the schedule does is none")
		require.NoError(t, c.processes["a"].end())
		synctest.Wait()
		require.Equal(t, []string{"a ended by itself; see a.log"}, n.Faults())
		require.Equal(t, "3s start a", c.done[len(c.done)-1])
		cancel()
		watching.Wait()
	})
}

func TestAProcessThatDoesNotComeBackIsAFault(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("a")
		c.processes["a"].broken = errors.New("not ready")
		n, err := newNemesis(c, "1s kill a 2s")
		require.NoError(t, err)
		n.Run(t.Context())
		require.Equal(t, []string{"wait for a for kill: not ready; see a.log"}, n.Faults())
	})
}

func TestAScheduleForAnotherClusterIsRefused(t *testing.T) {
	t.Parallel()
	_, err := newNemesis(newCluster("a"), "1s kill b 2s")
	require.ErrorContains(t, err, "no process b")
}
