// Package card makes the agent cards that the gateway serves, and serves them
// (A2A §8).
package card

import (
	"strings"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/services/gateway/internal/admission"
)

// Addresses are where senders reach the gateway. They come from configuration
// alone: what a request says of its host may be forged.
type Addresses struct {
	// HTTP is the URL of the root, without a slash at its end.
	HTTP string
	// GRPC is host:port.
	GRPC string
}

// Build completes an agent's card for the base path under which it is served;
// the root's is empty. Beside the interfaces it fills in what the gateway offers
// and, for each skill, when its answers are tasks.
func Build(agent *config.Agent, base string, at Addresses) *a2apb.AgentCard {
	c := proto.CloneOf(agent.Card.AgentCard)
	c.SupportedInterfaces = interfaces(agent, base, at)
	if c.Capabilities == nil {
		c.Capabilities = &a2apb.AgentCapabilities{}
	}
	c.Capabilities.Streaming = new(agent.Streaming())
	c.Capabilities.PushNotifications = new(false)
	for _, skill := range c.GetSkills() {
		skill.Description = strings.TrimSpace(skill.GetDescription() + " " + rule(agent, skill.GetId()))
	}
	return c
}

// interfaces stand in the order of preference. A gRPC address has no path, so
// agents that aren't at the root are named by their routing id.
func interfaces(agent *config.Agent, base string, at Addresses) []*a2apb.AgentInterface {
	tenant := ""
	if base != "" {
		tenant = "self." + agent.Name
	}
	return []*a2apb.AgentInterface{
		{Url: at.HTTP + base + "/rpc", ProtocolBinding: "JSONRPC", ProtocolVersion: admission.Version},
		{Url: at.HTTP + base, ProtocolBinding: "HTTP+JSON", ProtocolVersion: admission.Version},
		{Url: at.GRPC, ProtocolBinding: "GRPC", ProtocolVersion: admission.Version, Tenant: tenant},
	}
}
