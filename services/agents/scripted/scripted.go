// Package scripted is an agent that does what the text of a message says. Tests
// use it to make tasks of every shape, and newcomers to see one.
//
//	echo               one artifact with the text, COMPLETED; so does any text that is no command
//	sleep S            COMPLETED after S seconds
//	ask                INPUT_REQUIRED, COMPLETED after the reply
//	auth               AUTH_REQUIRED, COMPLETED after the reply or the grant, which the status message has as data
//	fail               the handler returns an error
//	panic              the handler panics
//	hang               never ends, and goes on long after it was told to
//	noterm             the handler returns without a terminal state although it said that it would set one
//	chunks N MS        N chunks of artifact a1, MS milliseconds apart (default 0), the last with lastChunk; COMPLETED
//	big B              an artifact of B bytes, COMPLETED
//	late               COMPLETED, then tries WORKING
//	msg                a direct Message; "msg two" tries to send two
package scripted

import (
	"context"
	_ "embed"
	"strings"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/agent"
	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
)

// Name is the agent's name in its agents file.
const Name = "scripted"

//go:embed agents.yaml
var agentsFile []byte

// AgentsFile is an agents file with the scripted agent alone.
func AgentsFile() []byte { return agentsFile }

// New returns the agent.
func New() agent.Agent {
	return agent.Agent{
		Name:     Name,
		Handler:  agent.HandlerFunc(handle),
		Messages: agent.MessageHandlerFunc(answer),
		Router:   agent.RouterFunc(route),
	}
}

// handle follows the script of each new message, in order; the last one says how
// the turn ends.
func handle(ctx context.Context, t *agent.Task) error {
	messages := t.Messages()
	settle := func() error { return t.Complete(ctx) }
	for i := len(messages) - len(t.NewMessages()); i < len(messages); i++ {
		if i > 0 && asks(messages[i-1]) {
			settle = func() error { return t.Complete(ctx) }
			continue
		}
		var err error
		if settle, err = run(ctx, t, messages[i].GetMessage()); err != nil {
			return err
		}
	}
	return settle()
}

// asks tells whether the next message is a reply to this one's question.
func asks(m *eventv1.UserMessage) bool {
	command, _ := parse(m.GetMessage())
	return command == "ask" || command == "auth"
}

func parse(m *a2apb.Message) (command string, args []string) {
	fields := strings.Fields(agent.TextOf(m))
	if len(fields) == 0 {
		return "", nil
	}
	return fields[0], fields[1:]
}
