// Command unfinished is an executor for tests. While it is broken, by a variable
// of its environment, its agent begins what it is told and never ends it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/services/executor"
)

// The agent's name, and the variable that breaks it.
const (
	name           = "unfinished"
	brokenVariable = "ERRAND_E2E_BROKEN"
)

func main() {
	handle := repeat
	if os.Getenv(brokenVariable) != "" {
		handle = begin
	}
	executor.Main(agent.Agent{Name: name, Handler: agent.HandlerFunc(handle)})
}

// begin says which attempt it is and goes on until it is ended.
func begin(ctx context.Context, t *agent.Task) error {
	if err := errors.Join(t.Progress(ctx, agent.Text(fmt.Sprintf("attempt %d", t.Attempt()))), t.Flush(ctx)); err != nil {
		return fmt.Errorf("say what goes on: %w", err)
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// repeat says what it was told.
func repeat(ctx context.Context, t *agent.Task) error {
	var told []string
	for _, m := range t.Messages() {
		told = append(told, agent.TextOf(m.GetMessage()))
	}
	return t.Complete(ctx, agent.Text(strings.Join(told, " ")))
}
