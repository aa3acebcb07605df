package main

import (
	"context"
	"fmt"
	"strings"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
)

type cardCommand struct {
	target

	Extended bool `help:"The card for authenticated callers."`
}

// Run prints what the agent says of itself.
func (k *cardCommand) Run(ctx context.Context, c *console) error {
	agent, err := k.connect(ctx, c)
	if err != nil {
		return err
	}
	defer agent.Close()
	card := agent.Card()
	if k.Extended {
		if card, err = agent.ExtendedCard(ctx); err != nil {
			return err
		}
	}
	if k.json() {
		return c.json(card)
	}
	c.describeCard(card)
	return nil
}

func (c *console) describeCard(card *a2apb.AgentCard) {
	c.print(fmt.Sprintf("%s %s\n%s\n", card.GetName(), card.GetVersion(), card.GetDescription()))
	c.print("\ninterfaces:\n")
	for _, i := range card.GetSupportedInterfaces() {
		tenant := ""
		if i.GetTenant() != "" {
			tenant = "  tenant " + i.GetTenant()
		}
		c.print(fmt.Sprintf("  %-9s %-4s %s%s\n", i.GetProtocolBinding(), i.GetProtocolVersion(), i.GetUrl(), tenant))
	}
	c.print("\ncapabilities: " + capabilities(card.GetCapabilities()) + "\n")
	c.print("\nskills:\n")
	for _, skill := range card.GetSkills() {
		c.print(fmt.Sprintf("  %s: %s\n", skill.GetId(), skill.GetDescription()))
	}
}

func capabilities(has *a2apb.AgentCapabilities) string {
	var names []string
	for _, capability := range []struct {
		name string
		has  bool
	}{
		{"streaming", has.GetStreaming()},
		{"push notifications", has.GetPushNotifications()},
		{"extended card", has.GetExtendedAgentCard()},
	} {
		if capability.has {
			names = append(names, capability.name)
		}
	}
	for _, extension := range has.GetExtensions() {
		names = append(names, extension.GetUri())
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
