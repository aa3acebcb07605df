package launch

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// Build compiles all programs of a cluster into a folder. It needs the sources,
// and is for tests.
func Build(ctx context.Context, bin string) error {
	mains := map[string]string{"nats-server": "github.com/nats-io/nats-server/v2"}
	for _, kind := range []Kind{Gateway, TaskStore, Notifier, Executor} {
		mains["errand-"+string(kind)] = "github.com/errandhq/errand/services/cmd/" + string(kind)
	}
	for name, main := range mains {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(bin, name), main)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w: %s", name, err, out)
		}
	}
	return nil
}
