package allinone

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/telemetry"
	"github.com/errandhq/errand/services/taskstore"
)

// Config says where the all-in-one keeps its data and what it serves.
type Config struct {
	Logger    *slog.Logger
	Telemetry *telemetry.Telemetry
	// DataDir holds the SQLite file, JetStream's files and the key of page tokens;
	// it is made if it isn't there, and belongs to one process at a time.
	DataDir string
	// DatabaseURL is a postgres:// URL to use instead of the SQLite file.
	DatabaseURL string
	// NATSURL is used instead of the embedded server.
	NATSURL string

	// Streams are the settings of the streams on NATS.
	Streams taskstore.Streams

	// Addresses to listen on; port 0 takes a free one.
	HTTP, GRPC string
	// Addresses for executors in other processes; empty opens no port.
	TaskStore, NATS string
	// As senders reach the gateway, for cards; empty stands for localhost.
	PublicURL, PublicGRPC string

	Agents *config.Agents
	// The code of agents that run in this process. Agents of the file that aren't
	// among them are left to executors in other processes.
	Handlers []agent.Agent
}

const (
	databaseFile = "errand.db"
	streamsDir   = "jetstream"
	cursorFile   = "cursor.key"
	cursorSize   = 32
	lockFile     = "lock"
	// Each stream has a bound of its own. One of the server would refuse to start on
	// the streams of a run with other settings.
	streamsDisk = 1 << 50
)

func (c Config) databaseURL() string {
	if c.DatabaseURL != "" {
		return c.DatabaseURL
	}
	return "sqlite:" + filepath.Join(c.DataDir, databaseFile)
}

// cursorKey is made once and kept, so that page tokens survive a restart.
func (c Config) cursorKey() ([]byte, error) {
	path := filepath.Join(c.DataDir, cursorFile)
	key, err := os.ReadFile(path) //nolint:gosec // in the data directory
	if err == nil && len(key) == cursorSize {
		return key, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read key of page tokens: %w", err)
	}
	key = make([]byte, cursorSize)
	_, _ = rand.Read(key) // never fails
	if err := os.WriteFile(path, key, 0o600); err != nil {
		return nil, fmt.Errorf("keep key of page tokens: %w", err)
	}
	return key, nil
}

// served are the handlers whose agents the file has.
func (c Config) served(ctx context.Context) []agent.Agent {
	var served []agent.Agent
	for _, h := range c.Handlers {
		if c.Agents.Agent(h.Name) != nil {
			served = append(served, h)
		}
	}
	for _, a := range c.Agents.Agents {
		if !has(served, a.Name) {
			c.Logger.InfoContext(ctx, "agent waits for an executor of its own", "agent", a.Name)
		}
	}
	return served
}

func has(agents []agent.Agent, name string) bool {
	for _, a := range agents {
		if a.Name == name {
			return true
		}
	}
	return false
}

// ErrDataInUse means that another process works on the data directory.
var ErrDataInUse = errors.New("the data directory is in use by another process")

// lockData keeps a second process away, which would tear the streams. The lock
// goes with the process, however it ends.
func (s *Service) lockData() error {
	lock := flock.New(filepath.Join(s.cfg.DataDir, lockFile))
	locked, err := lock.TryLock()
	if err != nil {
		return fmt.Errorf("lock data directory: %w", err)
	}
	if !locked {
		return fmt.Errorf("%w: %s", ErrDataInUse, s.cfg.DataDir)
	}
	s.AddCloser("data lock", func(context.Context) error { return lock.Unlock() })
	return nil
}
