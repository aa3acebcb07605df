// Package load sends messages as many well-behaved senders do, over all three
// bindings, and writes down everything that they were told. Its senders repeat
// themselves, lose answers, hang up, cancel, cut streams and take them up again.
package load

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/chaos/journal"
)

// Config says how much is sent to whom.
type Config struct {
	// Client leads to any gateway of the cluster.
	Client *binding.Client
	// Agents are names of agents that do what the chaos agent does. Hybrid is the
	// one among them that also answers by direct Messages; empty for none.
	Agents []string
	Hybrid string
	// Seed makes the load the same again, as far as the cluster's answers are.
	Seed uint64
	// Senders bounds how many conversations are open at the same time, Rate how
	// many begin each second.
	Senders int
	Rate    float64
	// Patience is how long senders go on after the end of the load to finish what
	// they began.
	Patience time.Duration
	// Journal is written to meanwhile, for those who look on; nil makes one.
	Journal *journal.Journal
	Logger  *slog.Logger
}

type load struct {
	Config

	journal *journal.Journal
}

// Run sends until ctx ends, finishes what was begun, and returns what happened.
func Run(ctx context.Context, cfg Config) *journal.Journal {
	l := &load{Config: cfg, journal: cmp.Or(cfg.Journal, new(journal.Journal))}
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(cfg.Patience, cancel) })
	defer stop()
	numbers := make(chan uint64)
	var senders sync.WaitGroup
	for range cfg.Senders {
		senders.Go(func() {
			for n := range numbers {
				l.begin(work, n)
			}
		})
	}
	l.pace(ctx, numbers)
	close(numbers)
	cfg.Logger.InfoContext(ctx, "finishing what was begun", "messages", len(l.journal.Messages()))
	senders.Wait()
	return l.journal
}

// pace numbers the conversations at the rate that was asked for, or more slowly
// when no sender is free.
func (l *load) pace(ctx context.Context, numbers chan<- uint64) {
	tick := time.NewTicker(time.Duration(float64(time.Second) / l.Rate))
	defer tick.Stop()
	for n := uint64(1); ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		select {
		case <-ctx.Done():
			return
		case numbers <- n:
		}
	}
}

// begin holds conversation n, which has a dice of its own: what it does depends
// on no other.
func (l *load) begin(ctx context.Context, n uint64) {
	dice := rand.New(rand.NewPCG(l.Seed, n))
	s := &sender{load: l, ctx: ctx, dice: dice, agent: l.Agents[dice.IntN(len(l.Agents))]}
	s.converse()
}
