package nemesis

import (
	"context"

	"github.com/errandhq/errand/services/e2e/internal/launch"
)

// Process is what befalls one process, as launch.Process has it.
type Process interface {
	Name() string
	Log() string
	Ended() <-chan struct{}
	Start(ctx context.Context) error
	Ready(ctx context.Context) error
	Kill(ctx context.Context) error
	Terminate(ctx context.Context) error
	Pause(ctx context.Context) error
	Continue(ctx context.Context) error
}

// Cluster is what befalls processes from outside, as launch.Cluster has it.
type Cluster interface {
	Cut(process string)
	Heal(process string)
	Reset(process string)
	WipeNATS(ctx context.Context) error
}

// ProcessesOf are all of a cluster's.
func ProcessesOf(c *launch.Cluster) []Process {
	var all []Process
	for _, p := range c.Processes() {
		all = append(all, p)
	}
	return all
}
