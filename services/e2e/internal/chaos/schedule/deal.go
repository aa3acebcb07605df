package schedule

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"time"
)

// Bounds of every schedule.
const (
	// Recovery is how long a process is left alone after a step.
	Recovery = 3 * time.Second
	// Outage bounds how long all processes of one kind may be disturbed together.
	Outage = 4 * time.Second
	// Pace suits a run of minutes: more than 200 kills and pauses in 20 of them.
	Pace = 3200 * time.Millisecond

	warmUp = time.Second
)

// The servers of which a cluster has one each.
const (
	nats     = "nats"
	postgres = "postgres"
)

// Config says what a schedule is for.
type Config struct {
	Seed uint64
	// Duration is when all processes must have been let alone for Recovery.
	Duration time.Duration
	// Pace is the mean time between two steps.
	Pace time.Duration
	// Lease is what some pauses outlast.
	Lease time.Duration
	// Processes are names such as gateway-0: all of a kind have the name before the
	// number. Those that are alone are never away for long.
	Processes []string
}

// card is a step that has no time yet.
type card struct {
	kind   Kind
	target string
	// shortest and longest bound how long it takes.
	shortest, longest time.Duration
}

// Deal makes a schedule: the cards of a shuffled deck one after the other, so
// that a run of minutes comes to everything as often as the deck has it. A card
// that would break a bound waits for its time.
func Deal(c Config) Schedule {
	dice := rand.New(rand.NewPCG(c.Seed, 0))
	var s Schedule
	var cards []card
	for at := warmUp; at < c.Duration; at += between(dice, c.Pace/2, c.Pace*3/2) {
		if len(cards) < len(c.Processes) {
			fresh := deck(c)
			dice.Shuffle(len(fresh), func(i, j int) { fresh[i], fresh[j] = fresh[j], fresh[i] })
			cards = append(cards, fresh...)
		}
		for i, card := range cards {
			step := Step{At: at, Kind: card.kind, Target: card.target, For: between(dice, card.shortest, card.longest)}
			if step.End()+Recovery <= c.Duration && s.allows(step) {
				s, cards = append(s, step), slices.Delete(cards, i, i+1)
				break
			}
		}
	}
	return s
}

func between(dice *rand.Rand, shortest, longest time.Duration) time.Duration {
	d := shortest + time.Duration(dice.Int64N(int64(longest-shortest)+1))
	return d.Round(time.Millisecond)
}

func deck(c Config) []card {
	var cards []card
	for _, p := range c.Processes {
		switch p {
		case nats:
			cards = append(cards, brief(Kill, p), brief(Pause, p), brief(Cut, p), brief(Reset, p), brief(Wipe, p))
		case postgres:
			cards = append(cards, brief(Kill, p), brief(Pause, p), brief(Restart, p), brief(Reset, p))
		default:
			cards = append(cards,
				brief(Kill, p), brief(Kill, p), brief(Kill, p), brief(Pause, p), brief(Restart, p), lasting(c, Pause, p),
				lasting(c, Cut, p), brief(Reset, p))
		}
	}
	return cards
}

func brief(k Kind, target string) card {
	return card{k, target, 100 * time.Millisecond, 2500 * time.Millisecond}
}

// lasting is longer than a lease.
func lasting(c Config, k Kind, target string) card {
	return card{k, target, c.Lease + time.Second, c.Lease + 4*time.Second}
}

var number = regexp.MustCompile(`-\d+$`)

// Group is the kind of a process: its name without the number.
func Group(process string) string { return number.ReplaceAllString(process, "") }

// allows tells whether step keeps the bounds after the steps before it.
func (s Schedule) allows(step Step) bool {
	for _, other := range s {
		if Group(other.Target) != Group(step.Target) {
			continue
		}
		// step begins later, and what it does is felt for a while after its end.
		together := min(other.End(), step.End()) + Recovery - step.At
		if other.Target == step.Target && together > 0 || together > Outage {
			return false
		}
	}
	return true
}
