package launch

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"sync"
)

// network leads connections between processes through links. A nil one leads them
// straight.
type network struct {
	mu    sync.Mutex
	links []*link
	cut   map[string]bool
}

func newNetwork() *network { return &network{cut: map[string]bool{}} }

// address is where a client reaches a server that listens on target.
func (n *network) address(ctx context.Context, client, server, target string) (string, error) {
	if n == nil {
		return target, nil
	}
	l := n.link(client, server, target)
	if err := l.listen(ctx); err != nil {
		return "", err
	}
	return l.listener.Addr().String(), nil
}

// url is address for a server that is known by its URL.
func (n *network) url(ctx context.Context, client, server, target string) (string, error) {
	if n == nil {
		return target, nil
	}
	u, err := url.Parse(target)
	if err != nil {
		return "", fmt.Errorf("URL of %s: %w", server, err)
	}
	if u.Host, err = n.address(ctx, client, server, u.Host); err != nil {
		return "", err
	}
	return u.String(), nil
}

// dialer connects a client inside the launcher to a server.
func (n *network) dialer(client, server, target string) func(ctx context.Context) (net.Conn, error) {
	if n == nil {
		return func(ctx context.Context) (net.Conn, error) { return (&net.Dialer{}).DialContext(ctx, "tcp", target) }
	}
	return n.link(client, server, target).dial
}

func (n *network) link(client, server, target string) *link {
	l := newLink(client, server, target)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.links = append(n.links, l)
	n.open(l)
	return l
}

// set cuts a process off or heals that. A link flows when neither end is cut off.
func (n *network) set(name string, cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[name] = cut
	for _, l := range n.links {
		n.open(l)
	}
}

func (n *network) open(l *link) { l.gate.set(!n.cut[l.client] && !n.cut[l.server]) }

// healAll undoes each cut.
func (n *network) healAll() {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.cut)
	for _, l := range n.links {
		n.open(l)
	}
}

// reset breaks the connections of a process.
func (n *network) reset(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.links {
		if l.client == name || l.server == name {
			l.reset()
		}
	}
}

// close ends all links.
func (n *network) close() {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.links {
		l.close()
	}
}

// Cut separates a process from all others, the front included, as a broken
// network does: bytes stop to flow in both directions, connections stay open, and
// new ones get no answer. It needs Config.Links.
func (c *Cluster) Cut(name string) { c.network.set(name, true) }

// Heal undoes Cut: bytes that were under way arrive.
func (c *Cluster) Heal(name string) { c.network.set(name, false) }

// Reset breaks all connections between a process and the others. Together with
// Heal it ends a cut that was longer than the kernel's patience.
func (c *Cluster) Reset(name string) { c.network.reset(name) }
