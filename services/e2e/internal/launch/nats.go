package launch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// natsSettings is the server's configuration: its store, its two addresses.
const natsSettings = `jetstream {
  store_dir: %q
  max_memory_store: 256MB
  max_file_store: 10GB
}
listen: %q
http: %q
max_payload: 8MB
`

// natsProgram is a NATS server with JetStream below dir.
func natsProgram(cfg Config, address, monitor string) (program, error) {
	settings := filepath.Join(cfg.Dir, "nats.conf")
	text := fmt.Sprintf(natsSettings, natsStore(cfg.Dir), address, monitor)
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		return program{}, fmt.Errorf("write the settings of NATS: %w", err)
	}
	return program{
		name: string(NATS), kind: NATS,
		path: filepath.Join(cfg.Bin, "nats-server"), args: []string{"--config", settings},
		ops: monitor, ready: answers("http://" + monitor + "/healthz"),
	}, nil
}

func natsStore(dir string) string { return filepath.Join(dir, "nats") }

// WipeNATS kills the NATS server, removes all that JetStream had stored, and
// starts it again.
func (c *Cluster) WipeNATS(ctx context.Context) error {
	server := c.Process(string(NATS))
	if server == nil {
		return fmt.Errorf("wipe NATS: it is not of this cluster")
	}
	if err := server.Kill(ctx); err != nil {
		return err
	}
	if err := os.RemoveAll(natsStore(c.cfg.Dir)); err != nil {
		return fmt.Errorf("wipe NATS: %w", err)
	}
	return server.Start(ctx)
}
