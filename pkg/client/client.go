package client

import (
	"context"
	"fmt"
	"strings"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/proto"
)

// Client speaks to one agent. It is safe for concurrent use.
type Client struct {
	card      *a2apb.AgentCard
	iface     *a2apb.AgentInterface
	transport transport
	opts      Options
}

// New reads the agent's card and returns a client for the first interface in it
// that both sides speak. The URL is the card's (it ends in ".json") or the base
// that has the card at .well-known/agent-card.json.
func New(ctx context.Context, url string, opts Options) (*Client, error) {
	opts = opts.withDefaults()
	card, err := FetchCard(ctx, url, opts)
	if err != nil {
		return nil, err
	}
	opts.plaintext = strings.HasPrefix(url, "http://")
	return FromCard(card, opts)
}

// FromCard returns a client for an agent whose card is known.
func FromCard(card *a2apb.AgentCard, opts Options) (*Client, error) {
	opts = opts.withDefaults()
	iface, err := choose(card, opts.Bindings)
	if err != nil {
		return nil, err
	}
	if opts.Tenant == "" {
		opts.Tenant = iface.GetTenant()
	}
	t, err := newTransport(iface, opts)
	if err != nil {
		return nil, fmt.Errorf("use %s at %s: %w", iface.GetProtocolBinding(), iface.GetUrl(), err)
	}
	return &Client{card: card, iface: iface, transport: t, opts: opts}, nil
}

// Close ends the connections. Streams that are still open fail.
func (c *Client) Close() error { return c.transport.close() }

// Card returns the agent's public card.
func (c *Client) Card() *a2apb.AgentCard { return c.card }

// Interface returns the interface of the card that is in use.
func (c *Client) Interface() *a2apb.AgentInterface { return c.iface }

// ExtendedCard returns the card that the agent shows to authenticated callers
// (A2A §3.1.11).
func (c *Client) ExtendedCard(ctx context.Context) (*a2apb.AgentCard, error) {
	card := &a2apb.AgentCard{}
	err := c.retry(ctx, func() error {
		return c.call(ctx, opExtendedCard, &a2apb.GetExtendedAgentCardRequest{}, card)
	})
	if err != nil {
		return nil, err
	}
	return card, nil
}

// taskOf does an operation that answers with a task and may be done twice.
func (c *Client) taskOf(ctx context.Context, op operation, request proto.Message) (*a2apb.Task, error) {
	t := &a2apb.Task{}
	if err := c.retry(ctx, func() error { return c.call(ctx, op, request, t) }); err != nil {
		return nil, err
	}
	return t, nil
}

// call does one unary operation under the client's tenant.
func (c *Client) call(ctx context.Context, op operation, request, response proto.Message) error {
	proto.Reset(response)
	if err := c.transport.call(ctx, op, c.addressed(request), response); err != nil {
		return fmt.Errorf("%s: %w", op.method, err)
	}
	return nil
}

func (c *Client) open(ctx context.Context, op operation, request proto.Message, lastEventID string) (stream, error) {
	s, err := c.transport.open(ctx, op, c.addressed(request), lastEventID)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op.method, err)
	}
	return s, nil
}

// addressed returns the request with the tenant that the interface asks for
// (A2A §4.4.6), unless the caller set one.
func (c *Client) addressed(request proto.Message) proto.Message {
	m := request.ProtoReflect()
	field := m.Descriptor().Fields().ByName("tenant")
	if c.opts.Tenant == "" || field == nil || m.Has(field) {
		return request
	}
	request = proto.Clone(request)
	m = request.ProtoReflect()
	m.Set(field, stringValue(c.opts.Tenant))
	return request
}
