// Package admission decides whether a request is served and for which agent.
// All bindings pass through it, in two steps: [Gate.Admit] looks at what came
// beside the body (who sent it, protocol version), [Route] at the routing id,
// which may stand in the body, and at the extensions that the agent requires.
package admission

import (
	"context"
	"errors"

	"github.com/errandhq/errand/pkg/auth"
	"github.com/errandhq/errand/pkg/config"
)

// Gate admits requests.
type Gate struct {
	Authenticator auth.Authenticator
	Agents        *config.Agents
}

// Request is what a binding knows before it has parsed the body.
type Request struct {
	Metadata auth.Metadata
	// QueryVersion is the query parameter A2A-Version; HTTP only.
	QueryVersion string
	// RoutingID is set where the request has been read already, so that an error that
	// comes before its routing is told as its agent wants.
	RoutingID string
	// Base is the agent that the base path names; nil if it names none.
	Base *config.Agent
	// Activated tells the sender which extensions are active, before anything
	// else is answered.
	Activated func(uris []string)
}

// Sender is who sent an admitted request. It belongs to one request.
type Sender struct {
	auth.Identity

	request Request
	agents  *config.Agents
	// The agent that the request has been routed to, or would be without a
	// routing id; nil if there is none.
	agent *config.Agent
}

// Admit checks credentials, then the protocol version (A2A §3.6). The context
// that it returns carries the sender.
func (g *Gate) Admit(ctx context.Context, r Request) (context.Context, error) {
	identity, err := g.Authenticator.Authenticate(ctx, r.Metadata)
	if err != nil {
		return ctx, err
	}
	s := &Sender{Identity: identity, request: r, agents: g.Agents, agent: r.Base}
	if s.agent == nil {
		s.agent = g.Agents.Default()
	}
	if _, agent, err := s.resolve(r.RoutingID); err == nil && agent != nil {
		s.agent = agent
	}
	ctx = context.WithValue(ctx, key{}, s)
	return ctx, checkVersion(r, g.Agents.DefaultVersion)
}

type key struct{}

// errNotAdmitted is a mistake of a binding, not of a sender.
var errNotAdmitted = errors.New("the request was not admitted")

func from(ctx context.Context) (*Sender, error) {
	s, ok := ctx.Value(key{}).(*Sender)
	if !ok {
		return nil, errNotAdmitted
	}
	return s, nil
}

// ErrorProfile returns the profile of the agent that the request is for.
func ErrorProfile(ctx context.Context) string {
	if s, err := from(ctx); err == nil && s.agent != nil {
		return s.agent.ErrorProfile
	}
	return ""
}
