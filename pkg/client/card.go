package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
)

// ErrNoInterface says that the card names no interface that this package speaks.
var ErrNoInterface = errors.New("the agent card has no interface of A2A 1.0 in a usable binding")

const wellKnown = ".well-known/agent-card.json"

// FetchCard reads an agent's public card (A2A §8.2); see New for the URL.
func FetchCard(ctx context.Context, address string, opts Options) (*a2apb.AgentCard, error) {
	opts = opts.withDefaults()
	location, err := cardURL(address)
	if err != nil {
		return nil, err
	}
	h := httpCaller{opts: opts}
	a, err := h.exchange(ctx, httpRequest{method: http.MethodGet, url: location, accept: mediaJSON})
	if err != nil {
		return nil, fmt.Errorf("get agent card %s: %w", location, err)
	}
	card := &a2apb.AgentCard{}
	if err := restResult(a, card); err != nil {
		return nil, fmt.Errorf("get agent card %s: %w", location, err)
	}
	return card, nil
}

func cardURL(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("agent URL: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("agent URL %q: want http:// or https:// and a host", address)
	}
	if !strings.HasSuffix(u.Path, ".json") {
		u = u.JoinPath(wellKnown)
	}
	return u.String(), nil
}

// choose returns the first interface in order of preference. Exactly 1.0 wins
// over other versions of 1, which A2A §3.6 has compatible.
func choose(card *a2apb.AgentCard, bindings []string) (*a2apb.AgentInterface, error) {
	if len(bindings) == 0 {
		for _, i := range card.GetSupportedInterfaces() {
			bindings = append(bindings, i.GetProtocolBinding())
		}
	}
	for _, version := range []func(string) bool{isCurrent, isCompatible} {
		for _, binding := range bindings {
			at := slices.IndexFunc(card.GetSupportedInterfaces(), func(i *a2apb.AgentInterface) bool {
				return i.GetProtocolBinding() == binding && spoken(binding) && version(i.GetProtocolVersion())
			})
			if at >= 0 {
				return card.GetSupportedInterfaces()[at], nil
			}
		}
	}
	return nil, fmt.Errorf("%w (wanted: %s)", ErrNoInterface, strings.Join(bindings, ", "))
}

func spoken(binding string) bool { return slices.Contains([]string{JSONRPC, HTTPJSON, GRPC}, binding) }

func isCurrent(version string) bool { return version == protocolVersion }

func isCompatible(version string) bool { return version == "1" || strings.HasPrefix(version, "1.") }
