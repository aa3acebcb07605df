package admission

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/telemetry"
)

// Call is a request with its agent.
type Call struct {
	Subject string
	// Tenant is whose data the call works on.
	Tenant string
	Agent  *config.Agent
	// Extensions are the active ones: requested and declared by the card.
	Extensions []string
}

// Scope bounds what the call can see in the task store: the subject's own tasks.
func (c *Call) Scope() *taskstorev1.Scope {
	return &taskstorev1.Scope{Tenant: c.Tenant, Agent: c.Agent.Name, Subject: c.Subject, OwnedOnly: true}
}

// Route finds tenant and agent of a request by its routing id (the tenant field
// of A2A requests): "tenant", "tenant.agent" or "self.agent"; empty stands for
// the sender's own tenant and the base path's agent. Then it checks that the
// extensions which the agent requires are requested.
//
// A tenant that the sender may not use, one that doesn't exist and an agent
// that doesn't exist get the same answer, as does a task that isn't visible if
// the request names one by taskID (A2A §13.1).
func Route(ctx context.Context, routingID, taskID string) (*Call, error) {
	s, err := from(ctx)
	if err != nil {
		return nil, err
	}
	tenant, agent, err := s.resolve(routingID)
	if err != nil {
		return nil, err
	}
	if tenant != s.Tenant || agent == nil {
		return nil, unknown(taskID)
	}
	s.agent = agent
	trace.SpanFromContext(ctx).SetAttributes(
		attribute.String(telemetry.AttrTenant, tenant), attribute.String(telemetry.AttrAgent, agent.Name))
	active, err := s.negotiate(agent)
	if err != nil {
		return nil, err
	}
	return &Call{Subject: s.Subject, Tenant: tenant, Agent: agent, Extensions: active}, nil
}

// Refused returns the error for a request whose body could not be parsed: what
// is checked before parsing goes first, for the agent of the base path.
func Refused(ctx context.Context, parseErr error) error {
	s, err := from(ctx)
	if err != nil || s.agent == nil {
		return parseErr
	}
	if _, err := s.negotiate(s.agent); err != nil {
		return err
	}
	return parseErr
}

// self stands for the sender's own tenant in cards that all senders read. Alone it
// names no agent, and no tenant either.
const self = "self"

func (s *Sender) resolve(routingID string) (tenant string, agent *config.Agent, err error) {
	if routingID == "" {
		return s.Tenant, s.agent, nil
	}
	tenant, name, named := strings.Cut(routingID, ".")
	if !named {
		return tenant, s.agent, nil
	}
	if tenant == self {
		tenant = s.Tenant
	}
	if base := s.request.Base; base != nil && base.Name != name {
		return "", nil, a2aerr.Invalid("tenant", "must not name another agent than the path")
	}
	return tenant, s.agents.Agent(name), nil
}

func unknown(taskID string) error {
	if taskID != "" {
		return a2aerr.TaskNotFound(taskID)
	}
	return a2aerr.Invalid("tenant", "must be a tenant and an agent that you can use")
}
