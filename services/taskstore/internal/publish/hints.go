package publish

import (
	"cmp"
	"context"
	"errors"

	"github.com/errandhq/errand/pkg/events"
	"github.com/errandhq/errand/pkg/queue"
	executorv1 "github.com/errandhq/errand/proto/gen/errand/executor/v1"
	"github.com/errandhq/errand/services/taskstore/internal/store"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// hint is a message that is sent once or not at all.
type hint struct {
	trace   trace.SpanContext
	work    *executorv1.WorkItem
	control store.Control
}

// addHints takes the hints of a transaction; those that find no room are dropped.
// p.mu is held.
func (p *Publisher) addHints(notices []store.Notice) {
	for _, n := range notices {
		for _, w := range n.Work {
			p.addHint(hint{trace: n.Trace, work: w})
		}
		for _, c := range n.Controls {
			p.addHint(hint{trace: n.Trace, control: c})
		}
	}
}

func (p *Publisher) addHint(h hint) {
	if len(p.hints) < maxPendingHints {
		p.hints = append(p.hints, h)
		wake(p.hintsCame)
	}
}

func (p *Publisher) hintLoop(ctx context.Context) error {
	for ctx.Err() == nil {
		p.mu.Lock()
		hints := p.hints
		p.mu.Unlock()
		p.sendHints(ctx, hints)
		p.mu.Lock()
		p.hints = p.hints[len(hints):]
		p.mu.Unlock()
		if len(hints) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
		case <-p.hintsCame:
		}
	}
	return nil
}

// sendHints sends control messages first: an agent that is to stop should.
func (p *Publisher) sendHints(ctx context.Context, hints []hint) {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	var items []queue.Item
	for _, h := range hints {
		traced := trace.ContextWithRemoteSpanContext(ctx, h.trace)
		if h.work != nil {
			items = append(items, queue.Item{Work: h.work, Traceparent: traceparent(traced)})
			continue
		}
		if err := events.SendControl(traced, p.NATS, h.control.Holder, h.control.Message); err != nil {
			p.Logger.DebugContext(traced, "dropped a control message; the heartbeat tells the same",
				"task_id", h.control.Message.GetTaskId(), "error", err)
		}
	}
	p.logDropped(ctx, p.Work.Publish(ctx, items...))
}

// logDropped says so once for all: while NATS is away nothing else happens. What
// the stream takes for a repeat it has dropped too, and the message that it
// remembers may have been worked on long ago.
func (p *Publisher) logDropped(ctx context.Context, results []queue.Result) {
	dropped, firstErr := 0, error(nil)
	for _, r := range results {
		if r.Duplicate {
			r.Err = errRepeated
		}
		if r.Err != nil {
			dropped++
			firstErr = cmp.Or(firstErr, r.Err)
		}
	}
	if dropped > 0 {
		p.Logger.WarnContext(ctx, "dropped work messages; the reaper sends them again", "dropped", dropped, "error", firstErr)
	}
}

var errRepeated = errors.New("the stream has seen its id before")

func traceparent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier["traceparent"]
}
