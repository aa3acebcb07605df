// Command witness is an executor for tests. Its agent works for as long as it is
// told to, and writes down when a run begins, by what it is told to end, and what
// becomes of its writes.
//
//	work S…   the n-th attempt works for the n-th number of seconds (the last one
//	          for all that follow) or until its context ends, then writes an
//	          artifact with the process id and completes, whether it may or not
//	deaf S…   the same, but goes on when its context ends
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/services/executor"
)

// The agent's name, and the variable that names the file of what it saw.
const (
	name         = "witness"
	fileVariable = "ERRAND_E2E_RUNS"
)

func main() {
	file, err := os.OpenFile(os.Getenv(fileVariable), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", fileVariable, err)
		os.Exit(1)
	}
	w := &witness{file: file}
	executor.Main(agent.Agent{Name: name, Handler: agent.HandlerFunc(w.handle)})
}

type witness struct{ file *os.File }

func (w *witness) handle(ctx context.Context, t *agent.Task) error {
	command := strings.Fields(agent.TextOf(t.Message().GetMessage()))
	w.note(t, "begin", "")
	defer context.AfterFunc(ctx, func() { w.note(t, "told", cause(ctx)) })()
	ends := ctx.Done()
	if command[0] == "deaf" {
		ends = nil
	}
	select {
	case <-time.After(seconds(command[1:], t.Attempt())):
	case <-ends:
	}
	part := agent.Text(strconv.Itoa(os.Getpid()))
	err := t.Emit(ctx, &a2apb.Artifact{ArtifactId: "result", Parts: []*a2apb.Part{part}})
	if err == nil {
		err = t.Flush(ctx)
	}
	w.note(t, "write", word(err))
	err = t.Complete(ctx)
	w.note(t, "complete", word(err))
	return err
}

func seconds(numbers []string, attempt int) time.Duration {
	n, err := strconv.ParseFloat(numbers[min(attempt, len(numbers))-1], 64)
	if err != nil {
		return 0
	}
	return time.Duration(n * float64(time.Second))
}

// cause is why a context has ended, with what a cancel said.
func cause(ctx context.Context) string {
	if canceled, ok := errors.AsType[*agent.CanceledError](context.Cause(ctx)); ok {
		return "canceled " + canceled.Metadata.GetFields()["reason"].GetStringValue()
	}
	return word(context.Cause(ctx))
}

func word(err error) string {
	for word, is := range map[string]error{
		"lease_lost": agent.ErrLeaseLost, "canceled": agent.ErrCanceled, "max_runtime": agent.ErrMaxRuntime,
		"draining": agent.ErrDraining, "ended": agent.ErrEnded,
	} {
		if errors.Is(err, is) {
			return word
		}
	}
	return fmt.Sprint(err)
}

// note writes one line by one call, so that kills lose none.
func (w *witness) note(t *agent.Task, what, detail string) {
	line := fmt.Sprintf("%d %d %s %d %s %s\n", time.Now().UnixNano(), os.Getpid(), t.ID(), t.Attempt(), what, detail)
	_, _ = w.file.WriteString(line)
}
