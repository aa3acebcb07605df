package launch

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
)

// NameVariable is the environment variable that tells a process its name in the
// cluster, such as executor-1.
const NameVariable = "ERRAND_PROCESS"

// loopback is an address with a free port.
const loopback = "127.0.0.1:0"

// Config says what a cluster consists of.
type Config struct {
	// Dir holds data, logs and the record of what runs. It belongs to one cluster at
	// a time; a cluster that starts on the directory of an earlier one has its tasks.
	// When the launcher runs as root, Postgres runs as the user postgres, who must
	// be able to pass through all folders above Dir.
	Dir string
	// Bin is the folder of the binaries: errand-* and, if no NATSURL is given,
	// nats-server.
	Bin string
	// AgentsFile is the agents file of all services.
	AgentsFile string
	// How many processes of each service run.
	Gateways, TaskStores, Notifiers, Executors int
	// ExecutorProgram is a program made by executor.Main.
	ExecutorProgram string
	// HTTP and GRPC are the front's addresses.
	HTTP, GRPC string
	// DatabaseURL and NATSURL name servers that run already; when empty, the cluster
	// starts its own.
	DatabaseURL, NATSURL string
	// Links leads every connection between two processes through the launcher, so
	// that Cut works. It needs a Postgres and a NATS server of the cluster's own.
	Links bool
	// Env is added to the environment of each process of Errand.
	Env []string
	// LogLevel is that of the processes.
	LogLevel slog.Level
	// Logger is the launcher's own.
	Logger *slog.Logger
}

// Defaults are two of each service, whose binaries are in bin, on free ports.
func Defaults(dir, bin, agentsFile string) Config {
	return Config{
		Dir: dir, Bin: bin, AgentsFile: agentsFile,
		Gateways: 2, TaskStores: 2, Notifiers: 2, Executors: 2,
		ExecutorProgram: filepath.Join(bin, "errand-executor"),
		HTTP:            loopback, GRPC: loopback,
		Logger: slog.New(slog.DiscardHandler),
	}
}

// complete checks the settings and makes paths independent of the current folder.
func (c *Config) complete() error {
	if min(c.Gateways, c.TaskStores, c.Notifiers, c.Executors) < 1 {
		return errors.New("a cluster needs one of each service at least")
	}
	if c.Links && (c.DatabaseURL != "" || c.NATSURL != "") {
		return errors.New("links need a Postgres and a NATS server that the cluster starts")
	}
	for _, path := range []*string{&c.Dir, &c.Bin, &c.AgentsFile, &c.ExecutorProgram} {
		var err error
		if *path, err = filepath.Abs(*path); err != nil {
			return fmt.Errorf("find %s: %w", *path, err)
		}
	}
	if _, err := os.Stat(c.AgentsFile); err != nil {
		return fmt.Errorf("agents file: %w", err)
	}
	return nil
}
