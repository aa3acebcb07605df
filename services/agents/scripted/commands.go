package scripted

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/agent"
)

// hangs is how long hang goes on after it was told to end: longer than any
// executor waits.
const hangs = time.Minute

var errScripted = errors.New("failed as the script says")

// run does what a message says and returns what is to settle the turn.
func run(ctx context.Context, t *agent.Task, m *a2apb.Message) (settle func() error, err error) {
	complete := func() error { return t.Complete(ctx) }
	switch command, args := parse(m); command {
	case "sleep":
		return complete, sleep(ctx, number(args, 0, 0))
	case "ask":
		return func() error { return t.AskInput(ctx, agent.Text("What is the answer?")) }, nil
	case "auth":
		return func() error { return askAuth(ctx, t) }, nil
	case "fail":
		return nil, errScripted
	case "panic":
		panic(errScripted)
	case "hang":
		return complete, hang(ctx)
	case "noterm":
		t.MustSettle()
		return func() error { return nil }, nil
	case "chunks":
		return complete, chunks(ctx, t, int(number(args, 0, 1)), number(args, 1, 0)/1000)
	case "big":
		return complete, big(ctx, t, int(number(args, 0, 0)))
	case "late":
		return func() error { return late(ctx, t) }, nil
	default:
		return complete, echo(ctx, t, m)
	}
}

// number is the i-th argument, or otherwise what stands for none or nonsense.
func number(args []string, i int, otherwise float64) float64 {
	if i < len(args) {
		if n, err := strconv.ParseFloat(args[i], 64); err == nil && n >= 0 {
			return n
		}
	}
	return otherwise
}

func echo(ctx context.Context, t *agent.Task, m *a2apb.Message) error {
	parts := m.GetParts()
	if text := agent.TextOf(m); text != "" {
		parts = []*a2apb.Part{agent.Text(text)}
	}
	return t.Emit(ctx, &a2apb.Artifact{Name: "echo", Parts: parts})
}

func sleep(ctx context.Context, seconds float64) error {
	timer := time.NewTimer(time.Duration(seconds * float64(time.Second)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func askAuth(ctx context.Context, t *agent.Task) error {
	grant := t.NewGrant()
	// A real agent gives it to whoever authorizes, never to the sender.
	shown, err := agent.Data(map[string]string{"grant": grant})
	if err != nil {
		return err
	}
	return t.AskAuth(ctx, grant, agent.Text("May I go on?"), shown)
}

func hang(ctx context.Context) error {
	<-ctx.Done()
	<-time.After(hangs)
	return context.Cause(ctx)
}

func chunks(ctx context.Context, t *agent.Task, n int, apart float64) error {
	stream := t.Stream(&a2apb.Artifact{ArtifactId: "a1", Name: "chunks"})
	for i := 1; i <= n; i++ {
		if i > 1 && apart > 0 {
			if err := sleep(ctx, apart); err != nil {
				return err
			}
		}
		send := stream.Send
		if i == n {
			send = stream.SendLast
		}
		if err := send(ctx, agent.Text(fmt.Sprintf("chunk %d\n", i))); err != nil {
			return err
		}
	}
	return nil
}

func big(ctx context.Context, t *agent.Task, n int) error {
	return t.Emit(ctx, &a2apb.Artifact{Name: "big", Parts: []*a2apb.Part{agent.Text(strings.Repeat("x", n))}})
}

func late(ctx context.Context, t *agent.Task) error {
	if err := t.Complete(ctx); err != nil {
		return err
	}
	return t.Progress(ctx, agent.Text("still here"))
}
