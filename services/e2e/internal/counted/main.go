// Command counted is an executor for tests. Its agent does what the scripted
// agent does, and writes a line to a file when a run of its handler begins, and
// one when it has ended: what was started twice shows, whatever was killed.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/services/agents/scripted"
	"github.com/errandhq/errand/services/executor"
)

// The agent's name, and the variable that names the file of runs.
const (
	name         = "counted"
	fileVariable = "ERRAND_E2E_RUNS"
)

func main() {
	// Written by one call each and never buffered, so that kills lose no line.
	runs, err := os.OpenFile(os.Getenv(fileVariable), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", fileVariable, err)
		os.Exit(1)
	}
	executor.Main(counted(runs))
}

func counted(runs *os.File) agent.Agent {
	a := scripted.New()
	a.Name = name
	handler := a.Handler
	a.Handler = agent.HandlerFunc(func(ctx context.Context, t *agent.Task) error {
		if err := note(runs, "begin", t); err != nil {
			return err
		}
		return errors.Join(handler.Handle(ctx, t), note(runs, "end", t))
	})
	return a
}

func note(runs *os.File, what string, t *agent.Task) error {
	line := []string{what, fmt.Sprint(os.Getpid()), t.ID(), t.IdempotencyKey(), fmt.Sprint(t.Attempt())}
	if _, err := runs.WriteString(strings.Join(line, " ") + "\n"); err != nil {
		return fmt.Errorf("note a run: %w", err)
	}
	return nil
}
