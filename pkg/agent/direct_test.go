package agent_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/pkg/agent/agenttest"
	"github.com/errandhq/errand/pkg/config"
	executorv1 "github.com/errandhq/errand/proto/gen/errand/executor/v1"
	"github.com/stretchr/testify/require"
)

func direct(handle agent.MessageHandlerFunc, route agent.RouterFunc) (*agenttest.Cluster, *safeBuffer) {
	logs := &safeBuffer{}
	a := agent.Agent{Name: "test", Messages: handle}
	if route != nil {
		a.Router = route
	}
	return agenttest.New(a, slog.New(slog.NewTextHandler(logs, nil))), logs
}

func TestDirect_ReplyIsAMessageOfTheAgentInTheContext(t *testing.T) {
	t.Parallel()
	c, _ := direct(func(_ context.Context, r *agent.Request) error {
		return r.Reply(agent.Text("you said " + agent.TextOf(r.Message())))
	}, nil)
	m := agenttest.Text("hi")
	m.ContextId = "c1"
	reply := c.Ask(m).GetMessage()
	require.Equal(t, "you said hi", agent.TextOf(reply))
	require.Equal(t, "c1", reply.GetContextId())
	require.NotEmpty(t, reply.GetMessageId())
}

func TestDirect_SecondReplyIsLoggedAndNotSent(t *testing.T) {
	t.Parallel()
	c, logs := direct(func(_ context.Context, r *agent.Request) error {
		if err := r.Reply(agent.Text("one")); err != nil {
			return err
		}
		return r.Reply(agent.Text("two"))
	}, nil)
	require.Equal(t, "one", agent.TextOf(c.Ask(agenttest.Text("x")).GetMessage()))
	require.Contains(t, logs.String(), "answered one message twice")
}

func TestDirect_AnswerAboveTheLimitIsAFailureThatSaysSo(t *testing.T) {
	t.Parallel()
	c, _ := direct(func(_ context.Context, r *agent.Request) error {
		return r.Reply(agent.Text(strings.Repeat("x", config.DefaultLimits().Event)))
	}, nil)
	require.Contains(t, c.Ask(agenttest.Text("x")).GetFailure().GetMessage(), "larger than allowed")
}

func TestDirect_MayNeedATaskOrReject(t *testing.T) {
	t.Parallel()
	c, _ := direct(func(_ context.Context, r *agent.Request) error {
		if agent.TextOf(r.Message()) == "reject" {
			return r.Reject("not my job")
		}
		return r.NeedTask("takes long")
	}, func(context.Context, *agent.Request) (string, error) { return "slow", nil })
	needed := c.Ask(agenttest.Text("x")).GetTaskNeeded()
	require.Equal(t, "slow", needed.GetSkill())
	require.Equal(t, "takes long", needed.GetReason())
	failure := c.Ask(agenttest.Text("reject")).GetFailure()
	require.Equal(t, executorv1.DirectFailure_KIND_REJECTED, failure.GetKind())
	require.Equal(t, "not my job", failure.GetMessage())
}

func TestDirect_FailuresShowNoInsides(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		handle agent.MessageHandlerFunc
		route  agent.RouterFunc
	}{
		"error":     {handle: func(context.Context, *agent.Request) error { return errors.New("secret sauce") }},
		"panic":     {handle: func(context.Context, *agent.Request) error { panic("secret sauce") }},
		"no answer": {handle: func(context.Context, *agent.Request) error { return nil }},
		"route":     {route: func(context.Context, *agent.Request) (string, error) { return "", errors.New("secret sauce") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.handle == nil {
				tc.handle = func(context.Context, *agent.Request) error { panic("not to be called") }
			}
			c, logs := direct(tc.handle, tc.route)
			failure := c.Ask(agenttest.Text("x")).GetFailure()
			require.Equal(t, executorv1.DirectFailure_KIND_AGENT, failure.GetKind())
			require.Regexp(t, `^The agent failed\. Reference: \S+$`, failure.GetMessage())
			require.Contains(t, logs.String(), failure.GetMessage()[len("The agent failed. Reference: "):])
		})
	}
}

func TestDirect_RuleOfTheSkillMakesATaskWithoutAskingTheHandler(t *testing.T) {
	t.Parallel()
	d := agent.Direct{
		Agent: agent.Agent{
			Name:     "test",
			Messages: agent.MessageHandlerFunc(func(context.Context, *agent.Request) error { panic("not to be called") }),
			Router:   agent.RouterFunc(func(context.Context, *agent.Request) (string, error) { return "book", nil }),
		},
		Proto:      &executorv1.DirectRequest{Message: agenttest.Text("x")},
		TaskReason: func(skill string) string { return skill + " has a side effect" }, MaxEventBytes: 1 << 20,
		Logger: slog.New(slog.DiscardHandler),
	}
	needed := d.Answer(t.Context()).GetTaskNeeded()
	require.Equal(t, "book has a side effect", needed.GetReason())
	require.Equal(t, "book", needed.GetSkill())
}

func TestAgent_Validate(t *testing.T) {
	t.Parallel()
	handler := agent.HandlerFunc(func(context.Context, *agent.Task) error { return nil })
	require.NoError(t, agent.Agent{Name: "a-1", Handler: handler}.Validate())
	require.Error(t, agent.Agent{Name: "A b", Handler: handler}.Validate())
	require.Error(t, agent.Agent{Name: "a"}.Validate())
}
