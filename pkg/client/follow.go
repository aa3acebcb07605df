package client

import (
	"context"
	"errors"
	"fmt"
	"io"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/task"
)

// follower follows one task over as many connections as it takes.
type follower struct {
	client *Client
	// begin opens the stream that tells the task's id, while it isn't known; nil where the id is given.
	begin func(ctx context.Context) (stream, error)
	// stop tells whether a state is the last one that is wanted; snapshot tells
	// whether it came with a whole task.
	stop func(state task.State, snapshot bool) bool

	tenant      string
	assembly    assembly
	lastEventID string
	// The agent has no streams for this task.
	polls bool
	// Connections and polls so far, updates given, broken rules.
	rounds, updates, breaches int

	yield func(*Update, error) bool
	done  bool
}

func (c *Client) newFollower(tenant, taskID string) *follower {
	return &follower{client: c, tenant: tenant, assembly: assembly{id: taskID}}
}

// run gives updates until the last one, the end of ctx, or too many failures.
func (f *follower) run(ctx context.Context, yield func(*Update, error) bool) {
	f.yield = yield
	tries := f.client.newAttempts()
	for {
		before := f.updates
		err := f.round(ctx)
		if f.done {
			return
		}
		if f.updates > before {
			tries.progress()
		}
		if err := tries.again(ctx, err); err != nil {
			yield(nil, err)
			return
		}
	}
}

// round reads one stream to its end. Where there is none to read, the task is
// asked for instead.
func (f *follower) round(ctx context.Context) error {
	f.rounds++
	if f.polls && f.assembly.id != "" {
		return f.poll(ctx)
	}
	begun, err := f.readStream(ctx)
	if err == nil || f.done || f.assembly.id == "" || ctx.Err() != nil || errors.Is(err, ErrProtocol) {
		return err
	}
	f.client.opts.Logger.InfoContext(ctx, "the stream broke off", "task_id", f.assembly.id, "error", err)
	if !begun {
		f.polls = f.polls || refusesStreams(err)
		return f.poll(ctx)
	}
	if worthRetry(err) {
		return err
	}
	// An error of the server's: what the task has come to shows in the next round.
	return nil
}

func refusesStreams(err error) bool {
	e := asError(err)
	return e != nil && (e.Reason == a2aerr.ReasonUnsupportedOperation || e.Reason == a2aerr.ReasonMethodNotFound)
}

// readStream reports whether the stream had any event.
func (f *follower) readStream(ctx context.Context) (begun bool, err error) {
	s, err := f.connect(ctx)
	if err != nil {
		return false, err
	}
	defer s.close()
	before := f.updates
	for ; !f.done; begun = true {
		e, err := s.next()
		if errors.Is(err, io.EOF) {
			return begun, f.ended(f.updates > before)
		}
		if err == nil {
			err = f.apply(e)
		}
		if errors.Is(err, ErrProtocol) {
			return begun, f.broken(err)
		}
		if err != nil {
			return begun, err
		}
	}
	return begun, nil
}

func (f *follower) connect(ctx context.Context) (stream, error) {
	if f.assembly.id == "" && f.begin != nil {
		return f.begin(ctx)
	}
	request := &a2apb.SubscribeToTaskRequest{Tenant: f.tenant, Id: f.assembly.id}
	return f.client.open(ctx, opSubscribe, request, f.lastEventID)
}

// ended is for a stream that the server closed in good order. Servers do so
// when they shut down; some also while a task waits for its sender, and do it
// again at once.
func (f *follower) ended(news bool) error {
	if f.assembly.id == "" {
		return lost(io.ErrUnexpectedEOF)
	}
	f.done = f.done || !news && task.Interrupted(f.assembly.task.GetStatus().GetState())
	return nil
}

// broken is for an event that does not fit the task. The next stream starts
// from a fresh task; breaking again is one time too many.
func (f *follower) broken(err error) error {
	f.lastEventID = ""
	if f.breaches++; f.breaches > 1 || f.assembly.id == "" {
		return err
	}
	return nil
}

func (f *follower) poll(ctx context.Context) error {
	t := &a2apb.Task{}
	if err := f.client.call(ctx, opGet, &a2apb.GetTaskRequest{Tenant: f.tenant, Id: f.assembly.id}, t); err != nil {
		return err
	}
	return f.apply(event{response: taskEvent(t)})
}

// apply puts an event into the task and gives it to the caller.
func (f *follower) apply(e event) error {
	did, err := f.assembly.apply(e.response)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	if e.id != "" {
		f.lastEventID = e.id
	}
	f.done = did.direct || f.stop(did.state, did.snapshot)
	if did.repeat {
		return nil
	}
	f.updates++
	if !f.yield(&Update{Event: e.response, Task: f.assembly.task, Resync: e.resync}, nil) {
		f.done = true
	}
	return nil
}
