package agents

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/services/e2e/internal/chaos/journal"
)

// How often long tells that it goes on.
const progressEvery = 250 * time.Millisecond

// How a turn was settled, as the journal says it.
const (
	completed = "completed"
	asked     = "asked"
	failed    = "failed"
)

// script is one run.
type script struct {
	*agent.Task

	run string
}

// text is a part that shows who wrote it.
func (s script) text(text string) *a2apb.Part { return agent.Text(journal.Sign(s.run, text)) }

// follow does what each new message says, in order; the last one says how the
// turn is settled.
func (s script) follow(ctx context.Context) (settled string, err error) {
	messages := s.Messages()
	settled = completed
	for i := len(messages) - len(s.NewMessages()); i < len(messages); i++ {
		text := agent.TextOf(messages[i].GetMessage())
		var question string
		if i > 0 {
			question = agent.TextOf(messages[i-1].GetMessage())
		}
		if settled, err = s.say(ctx, question, text); err != nil {
			return "", err
		}
	}
	return settled, s.settle(ctx, settled)
}

// say does what one message says, which is an answer if the one before it asks.
func (s script) say(ctx context.Context, before, text string) (settled string, err error) {
	if after, asks := strings.CutPrefix(before, "ask"); asks {
		answer := &a2apb.Artifact{ArtifactId: "answer", Parts: []*a2apb.Part{s.text(journal.Quote(text))}}
		if err := s.Emit(ctx, answer); err != nil {
			return "", err
		}
		text = after
	}
	command := append(strings.Fields(text), "", "", "")
	switch command[0] {
	case "ask":
		return asked, nil
	case "fail":
		return failed, nil
	case "steps":
		return completed, s.steps(ctx, number(command[1]), time.Duration(number(command[2]))*time.Millisecond)
	case "long":
		return completed, s.long(ctx, time.Duration(number(command[1]))*time.Second)
	default:
		return completed, nil
	}
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}

func (s script) steps(ctx context.Context, n int, apart time.Duration) error {
	stream := s.Stream(&a2apb.Artifact{ArtifactId: "a1", Name: "steps"})
	for i := 1; i <= n; i++ {
		if i > 1 {
			if err := wait(ctx, apart); err != nil {
				return err
			}
		}
		send := stream.Send
		if i == n {
			send = stream.SendLast
		}
		if err := send(ctx, s.text(journal.Chunk(i, n))); err != nil {
			return err
		}
	}
	return nil
}

func (s script) long(ctx context.Context, d time.Duration) error {
	for begun := time.Now(); time.Since(begun) < d; {
		if err := s.Progress(ctx, s.text("going on")); err != nil {
			return err
		}
		if err := wait(ctx, progressEvery); err != nil {
			return err
		}
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s script) settle(ctx context.Context, how string) error {
	switch how {
	case asked:
		return s.AskInput(ctx, s.text("what is the answer?"))
	case failed:
		return s.Fail(ctx, s.text("failed on purpose"))
	default:
		return s.Complete(ctx, s.text("done"))
	}
}

// result is how the handler saw its end.
func result(ctx context.Context, settled string, err error) string {
	if err == nil {
		return settled
	}
	for cause, name := range map[error]string{
		agent.ErrCanceled: "canceled", agent.ErrLeaseLost: "lease lost", agent.ErrDraining: "draining", agent.ErrMaxRuntime: "max runtime",
	} {
		if errors.Is(err, cause) || errors.Is(context.Cause(ctx), cause) {
			return name
		}
	}
	return fmt.Sprintf("error: %v", err)
}
