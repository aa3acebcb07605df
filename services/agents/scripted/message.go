package scripted

import (
	"context"
	"errors"

	"github.com/errandhq/errand/pkg/agent"
)

// route sends msg to the skill that answers, everything else to the one that
// makes tasks.
func route(_ context.Context, r *agent.Request) (string, error) {
	if command, _ := parse(r.Message()); command == "msg" {
		return "answer", nil
	}
	return "script", nil
}

func answer(_ context.Context, r *agent.Request) error {
	command, args := parse(r.Message())
	if command != "msg" {
		return r.NeedTask("only msg is answered by a Message")
	}
	err := r.Reply(agent.Text(agent.TextOf(r.Message())))
	if len(args) > 0 && args[0] == "two" {
		err = errors.Join(err, r.Reply(agent.Text("and another one")))
	}
	return err
}
