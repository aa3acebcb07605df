// Package httpbind holds what the two JSON bindings share as users of HTTP:
// bodies, media types, error responses and event streams.
package httpbind

import (
	"context"

	"github.com/errandhq/errand/pkg/config"
)

type baseKey struct{}

// WithBase notes which agent the base path of a request names.
func WithBase(ctx context.Context, agent *config.Agent) context.Context {
	return context.WithValue(ctx, baseKey{}, agent)
}

// Base returns the agent that the base path names; nil at the root.
func Base(ctx context.Context) *config.Agent {
	agent, _ := ctx.Value(baseKey{}).(*config.Agent)
	return agent
}
