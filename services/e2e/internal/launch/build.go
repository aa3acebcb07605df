package launch

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Build compiles all programs of a cluster into a folder. It needs the sources,
// and is for tests.
func Build(ctx context.Context, bin string) error {
	const mains = "github.com/errandhq/errand/services/cmd/"
	services := []Kind{Gateway, TaskStore, Notifier, Executor}
	// One command for all: they share most of their packages.
	args := []string{"build", "-o", bin + string(filepath.Separator), "github.com/nats-io/nats-server/v2"}
	for _, kind := range services {
		args = append(args, mains+string(kind))
	}
	if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("build the programs of a cluster: %w: %s", err, out)
	}
	for _, kind := range services {
		if err := os.Rename(filepath.Join(bin, string(kind)), filepath.Join(bin, "errand-"+string(kind))); err != nil {
			return fmt.Errorf("name the programs of a cluster: %w", err)
		}
	}
	return nil
}
