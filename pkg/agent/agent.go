package agent

import (
	"context"
	"errors"
	"fmt"
	"regexp"
)

// Agent is one agent's code. What else is known of it (card, lifecycle,
// concurrency, limits) stands in the agents file under the same name.
type Agent struct {
	// Name as in the agents file: [a-z0-9-]+.
	Name string
	// Handler runs tasks. Nil for an agent that answers by Messages alone.
	Handler Handler
	// Messages answers without a task. Nil for an agent that makes tasks alone.
	Messages MessageHandler
	// Router names the skill that a message asks for, by which the agents file
	// decides whether it must become a task. Nil: no skill.
	Router Router
}

// Handler runs one turn of a task. It may be called from several goroutines,
// for different tasks.
type Handler interface {
	Handle(ctx context.Context, t *Task) error
}

// HandlerFunc is a function as a [Handler].
type HandlerFunc func(ctx context.Context, t *Task) error

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, t *Task) error { return f(ctx, t) }

// MessageHandler answers a message while its sender waits: by one
// [Request.Reply], or by [Request.NeedTask]. An error, or neither, is a failure
// of the agent. It may be called again for the same message, and the first
// stored answer wins.
type MessageHandler interface {
	HandleMessage(ctx context.Context, r *Request) error
}

// MessageHandlerFunc is a function as a [MessageHandler].
type MessageHandlerFunc func(ctx context.Context, r *Request) error

// HandleMessage calls f.
func (f MessageHandlerFunc) HandleMessage(ctx context.Context, r *Request) error { return f(ctx, r) }

// Router names the skill (its id in the card) that a message asks for; empty if
// none fits. It is quick and has no effects.
type Router interface {
	Route(ctx context.Context, r *Request) (skill string, err error)
}

// RouterFunc is a function as a [Router].
type RouterFunc func(ctx context.Context, r *Request) (string, error)

// Route calls f.
func (f RouterFunc) Route(ctx context.Context, r *Request) (string, error) { return f(ctx, r) }

var validName = regexp.MustCompile(`^[a-z0-9-]+$`)

// Validate tells what is wrong with a.
func (a Agent) Validate() error {
	if !validName.MatchString(a.Name) {
		return fmt.Errorf("agent name %q: want [a-z0-9-]+", a.Name)
	}
	if a.Handler == nil && a.Messages == nil {
		return fmt.Errorf("agent %s: %w", a.Name, errors.New("has neither Handler nor Messages"))
	}
	return nil
}
