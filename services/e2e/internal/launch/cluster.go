package launch

import (
	"context"
	"errors"
)

// Cluster is a running cluster.
type Cluster struct{}

// Start starts a cluster and waits until all of it is ready. A start that fails
// ends what it had started.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	_, _ = ctx, cfg
	return nil, errors.New("not built yet")
}

// Stop ends all processes, those that use others first, and what still runs when
// ctx ends by force. Data and logs stay.
func (c *Cluster) Stop(ctx context.Context) error { _ = ctx; return nil }

// HTTP is the front's address for JSON-RPC, HTTP+JSON and cards, host:port.
func (c *Cluster) HTTP() string { return "" }

// GRPC is the front's address for gRPC, host:port.
func (c *Cluster) GRPC() string { return "" }

// TaskStores are the addresses of the task stores, past all links.
func (c *Cluster) TaskStores() []string { return nil }

// DatabaseURL is that of the database, past all links.
func (c *Cluster) DatabaseURL() string { return "" }

// NATSURL is that of the NATS server, past all links.
func (c *Cluster) NATSURL() string { return "" }

// Processes are all processes in the order of their start.
func (c *Cluster) Processes() []*Process { return nil }

// Process is the process of that name, such as gateway-0, taskstore-1, notifier-0,
// executor-1, postgres, nats; nil if there is none.
func (c *Cluster) Process(name string) *Process { _ = name; return nil }

// WipeNATS kills the NATS server, removes all that JetStream had stored, and
// starts it again.
func (c *Cluster) WipeNATS(ctx context.Context) error { _ = ctx; return nil }

// Cut separates a process from all others, the front included, as a broken
// network does: bytes stop to flow in both directions, connections stay open, and
// new ones get no answer. It needs Config.Links.
func (c *Cluster) Cut(name string) { _ = name }

// Heal undoes Cut: bytes that were under way arrive.
func (c *Cluster) Heal(name string) { _ = name }

// Reset breaks all connections between a process and the others. Together with
// Heal it ends a cut that was longer than the kernel's patience.
func (c *Cluster) Reset(name string) { _ = name }
