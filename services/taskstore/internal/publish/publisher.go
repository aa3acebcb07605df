package publish

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/errandhq/errand/pkg/events"
	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/queue"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/errandhq/errand/services/taskstore/internal/store"
	"github.com/nats-io/nats.go"
)

// Bounds of what is kept in memory. Beyond them events are drained from the
// outbox, and hints are left to the reaper and the heartbeat.
const (
	maxPendingBytes = 64 << 20
	maxPendingHints = 20_000
)

// doubtTime is how long a transaction in doubt is looked for. The server ends one
// whose COMMIT never came after some seconds, and one whose COMMIT came is
// through by then; should it commit even later, readers fill the hole from the
// store, and the reaper finds the task.
const doubtTime = 30 * time.Second

// ErrNotRegistered means that the publisher's row could not be written yet: should
// the process die now, nobody would find what it left unpublished.
var ErrNotRegistered = errors.New("publisher is not registered")

// Options is what a Publisher needs. All fields are required.
type Options struct {
	// Name stands in the event rows; no two processes share one, ever.
	Name   string
	Outbox engine.Outbox
	NATS   *nats.Conn
	Events *events.Publisher
	Work   *queue.Publisher
	Now    func() time.Time
	Logger *slog.Logger
}

// Publisher publishes what one task store commits. It is a lifecycle.Service.
type Publisher struct {
	Options
	parts *lifecycle.Group
	left  sync.Once
	// maxPendingBytes and doubtTime; tests can't wait for either.
	roomBytes int
	doubtTime time.Duration
	// Something to publish has come, or may be drained now.
	eventsCame chan struct{}
	hintsCame  chan struct{}

	mu     sync.Mutex
	ledger ledger
	// Committed and kept in memory, in the order of their commits.
	pending      []*commit
	pendingBytes int
	doubts       []*doubt
	hints        []hint
	// Set while events are drained from the outbox.
	behind *backlog
	beaten bool
}

var (
	_ store.Publisher   = (*Publisher)(nil)
	_ lifecycle.Service = (*Publisher)(nil)
)

// commit is the events of one transaction.
type commit struct {
	span   *span
	events []events.Traced
	bytes  int
}

// New returns a publisher that isn't running yet; it takes commits already.
func New(o Options) *Publisher {
	p := &Publisher{
		Options:    o,
		parts:      lifecycle.NewGroup(o.Logger),
		roomBytes:  maxPendingBytes,
		doubtTime:  doubtTime,
		eventsCame: make(chan struct{}, 1),
		hintsCame:  make(chan struct{}, 1),
	}
	p.parts.Add("beat", lifecycle.NewLoop(p.beatLoop))
	p.parts.Add("events", lifecycle.NewLoop(p.eventLoop))
	p.parts.Add("hints", lifecycle.NewLoop(p.hintLoop))
	return p
}

// Start registers the publisher and begins to publish. A database that is away
// doesn't fail the start; see Ready.
func (p *Publisher) Start(ctx context.Context) error {
	if err := p.beat(ctx); err != nil {
		p.Logger.WarnContext(ctx, "could not register the publisher yet", "publisher", p.Name, "error", err)
	}
	return p.parts.Start(ctx)
}

// Stop publishes what is left while ctx lasts, as long as that gets on; the store
// must not commit any more. What can't be published is left to a relay.
func (p *Publisher) Stop(ctx context.Context) error {
	finished := p.finish(ctx)
	// The loops end at once, and a mark that is recorded saves the relay work.
	hard, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	err := p.parts.Stop(hard)
	p.left.Do(func() {
		if !finished {
			p.Logger.WarnContext(ctx, "stopped with unpublished events; another task store publishes them", "publisher", p.Name)
		}
		if leaveErr := p.leave(hard); leaveErr != nil {
			p.Logger.WarnContext(ctx, "stopped without recording what is published; another task store publishes some again", "publisher", p.Name, "error", leaveErr)
		}
		err = errors.Join(err, ctx.Err())
	})
	return err
}

const (
	// How often a stop looks whether everything is published.
	idlePoll = 5 * time.Millisecond
	// How long a stop waits for nothing at all to be published: NATS is away.
	stuckAfter = 2 * time.Second
	// What a stop may take beyond its time.
	leaveTimeout = 3 * time.Second
)

// finish waits until everything is published. It gives up when ctx ends, or when
// nothing gets on any more.
func (p *Publisher) finish(ctx context.Context) bool {
	if p.parts.Ready() != nil {
		return true // it has not started, or has ended before
	}
	left, since := p.unpublished(), time.Now()
	for !p.idle() {
		if now := p.unpublished(); now != left {
			left, since = now, time.Now()
		}
		if ctx.Err() != nil || time.Since(since) > stuckAfter {
			return false
		}
		select {
		case <-ctx.Done():
		case <-time.After(idlePoll):
		}
	}
	return true
}

// unpublished changes with everything that is published.
func (p *Publisher) unpublished() [2]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return [2]int64{p.mark(), int64(len(p.hints))}
}

// idle tells whether nothing waits to be published. Whoever is in doubt waits for
// something that may never come.
func (p *Publisher) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.behind == nil && p.ledger.open.Len() == len(p.doubts) && len(p.hints) == 0
}

// leave forgets a publisher that has published everything, or records how far it
// came.
func (p *Publisher) leave(ctx context.Context) error {
	if !p.registered() {
		return nil
	}
	if err := p.beat(ctx); err != nil {
		return err
	}
	if err := p.Outbox.DropPublisher(ctx, p.Name); err != nil {
		return fmt.Errorf("forget the publisher: %w", err)
	}
	return nil
}

// Ready fails while nobody would take over from this process. That NATS is away
// is no reason: events wait in the outbox.
func (p *Publisher) Ready() error {
	if !p.registered() {
		return ErrNotRegistered
	}
	return p.parts.Ready()
}

func (p *Publisher) registered() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.beaten
}

// mark is the number up to which everything is published. p.mu is held.
func (p *Publisher) mark() int64 {
	if p.behind != nil {
		return min(p.behind.drained, p.ledger.mark())
	}
	return p.ledger.mark()
}

func wake(came chan struct{}) {
	select {
	case came <- struct{}{}:
	default:
	}
}
