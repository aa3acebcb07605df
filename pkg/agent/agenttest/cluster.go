package agenttest

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/task"
	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	executorv1 "github.com/errandhq/errand/proto/gen/errand/executor/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
)

// The one sender that there is.
const (
	Tenant  = "default"
	Subject = "anonymous"
)

// Cluster keeps the tasks and contexts of one agent.
type Cluster struct {
	agent  agent.Agent
	logger *slog.Logger
	store  *memory
}

// New returns an empty cluster for a valid agent. What the agent's handlers log
// goes to logger.
func New(a agent.Agent, logger *slog.Logger) *Cluster {
	return &Cluster{agent: a, logger: logger, store: newMemory()}
}

// Text makes a sender's message of one text part with a fresh id.
func Text(text string) *a2apb.Message {
	return Message(agent.Text(text))
}

// Message makes a sender's message with a fresh id.
func Message(parts ...*a2apb.Part) *a2apb.Message {
	return &a2apb.Message{MessageId: task.NewID(), Role: a2apb.Role_ROLE_USER, Parts: parts}
}

// Send sends m as a blocking SendMessage does: it returns the task once it is
// terminal or interrupted. The message's task id names the task that it
// continues, its context id the context of a new one.
func (c *Cluster) Send(m *a2apb.Message) (*a2apb.Task, error) {
	turn, err := c.Start(m)
	if err != nil {
		return nil, err
	}
	return turn.Wait(), nil
}

// Start sends m and returns while the agent is at it.
func (c *Cluster) Start(m *a2apb.Message) (*Turn, error) {
	r, err := c.store.accept(m)
	if err != nil {
		return nil, err
	}
	return c.run(r), nil
}

// Resume redeems a grant and returns the task once it is settled again.
func (c *Cluster) Resume(grant string) (*a2apb.Task, error) {
	var r *record
	if err := agent.Resume(context.Background(), resumer{c.store, &r}, grant); err != nil {
		return nil, fmt.Errorf("redeem a grant: %w", err)
	}
	return c.run(r).Wait(), nil
}

// Ask asks for a direct Message, with no rule that makes it a task.
func (c *Cluster) Ask(m *a2apb.Message) *executorv1.DirectReply {
	return agent.Direct{
		Agent: c.agent, Memory: c.store, Logger: c.logger,
		TaskReason: func(string) string { return "" }, MaxEventBytes: config.DefaultLimits().Event,
		Proto: &executorv1.DirectRequest{
			Tenant: Tenant, Agent: c.agent.Name, Message: m, Request: &eventv1.RequestInfo{Subject: Subject},
		},
	}.Answer(context.Background())
}

// Events are the events that the agent's handlers wrote to a task, in order.
func (c *Cluster) Events(taskID string) []*taskstorev1.TaskEvent {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	if r := c.store.tasks[taskID]; r != nil {
		return r.events
	}
	return nil
}

func (c *Cluster) run(r *record) *Turn {
	turn := &Turn{c: c, r: r, done: make(chan struct{})}
	turn.next()
	go turn.loop()
	return turn
}

func (c *Cluster) claim(l *lease) agent.Claim {
	return agent.Claim{
		Agent: c.agent, Proto: l.claim, Lease: l, Store: c.store, Logger: c.logger,
		MaxEventBytes: config.DefaultLimits().Event, Patience: time.Second,
	}
}

// Context is what the agent remembers in a context.
func (c *Cluster) Context(id string) *agent.Context {
	return agent.NewContext(c.store, &taskstorev1.Scope{Tenant: Tenant, Agent: c.agent.Name, Subject: Subject}, id)
}
