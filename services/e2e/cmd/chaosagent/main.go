// Command chaosagent is the executor of a chaos run: it serves the agents of
// package agents and writes down each run of their handlers.
package main

import (
	"fmt"
	"os"

	"github.com/errandhq/errand/services/e2e/internal/chaos/agents"
	"github.com/errandhq/errand/services/e2e/internal/chaos/journal"
	"github.com/errandhq/errand/services/e2e/internal/launch"
	"github.com/errandhq/errand/services/executor"
)

func main() {
	process, pid := os.Getenv(launch.NameVariable), os.Getpid()
	log, err := journal.CreateRunLog(os.Getenv(journal.RunsVariable), process, pid)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	executor.Main(agents.New(process, pid, log)...)
}
