package config

import (
	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
)

// Lifecycle says whether an agent's answers are tasks.
type Lifecycle string

const (
	// LifecycleTask makes every message a task.
	LifecycleTask Lifecycle = "task"
	// LifecycleMessage answers every message directly.
	LifecycleMessage Lifecycle = "message"
	// LifecycleHybrid lets the skill decide, see SkillRule.
	LifecycleHybrid Lifecycle = "hybrid"
)

// FollowUps says what a queued or running task does with another message.
type FollowUps string

const (
	// FollowUpsAppend delivers it to the handler.
	FollowUpsAppend FollowUps = "append"
	// FollowUpsRefuse answers UnsupportedOperation.
	FollowUpsRefuse FollowUps = "refuse"
)

// Switch is on or off.
type Switch string

// On tells whether a switch is on.
func (s Switch) On() bool { return s == "on" }

// Condition makes every message of a skill a task.
type Condition string

// The seven conditions. Each names a promise that only a task can keep.
const (
	SideEffect            Condition = "side_effect"
	HumanInput            Condition = "human_input"
	SeparateAuthorization Condition = "separate_authorization"
	MayOutliveRequest     Condition = "may_outlive_request"
	ManagedArtifacts      Condition = "managed_artifacts"
	CancelOrRecovery      Condition = "cancel_or_recovery"
	Retention             Condition = "retention"
)

// Agents is a parsed agents file. It is read-only once loaded.
type Agents struct {
	// Identifies the contents: services that differ in it must not work together.
	Version string `json:"-"`
	// Protocol version of requests that name none; empty refuses them (A2A §3.6.2).
	DefaultVersion string  `json:"default_version"`
	Limits         Limits  `json:"limits"`
	Agents         []Agent `json:"agents"`
}

// Agent is one agent of the file.
type Agent struct {
	// [a-z0-9-]+, unique, none of the reserved names.
	Name string `json:"name"`
	// Served at the root too. One agent at most; a single agent always is.
	Default   bool      `json:"default"`
	Lifecycle Lifecycle `json:"lifecycle"`
	// Off accepts a message again that was accepted before.
	Dedupe    Switch    `json:"dedupe"`
	FollowUps FollowUps `json:"follow_ups"`
	// Whether parts are checked against the card's input modes.
	InputModes Switch `json:"input_modes"`
	// "1.0.0" answers gRPC UNIMPLEMENTED where later texts say FAILED_PRECONDITION.
	ErrorProfile string `json:"error_profile"`

	// Turns that one executor runs at the same time.
	Concurrency int `json:"concurrency"`
	// Direct Messages that one executor answers at the same time.
	DirectConcurrency int `json:"direct_concurrency"`
	// Tasks that may wait for an executor, of all tenants; new ones are refused
	// beyond, roughly. Follow-ups and repeated messages are taken nevertheless.
	MaxQueued int `json:"max_queued"`
	// Claims of one turn that may be lost before the task fails.
	MaxAttempts int `json:"max_attempts"`
	// Of one turn, from its first claim.
	MaxRuntime Duration `json:"max_runtime"`
	// How long a task may wait for its sender.
	InputTimeout Duration `json:"input_timeout"`
	// How long a claim holds without a heartbeat.
	Lease Duration `json:"lease"`

	// By skill id; a hybrid agent has one for each skill of its card.
	Skills []SkillRule `json:"skills"`
	// What the author says of the agent. Interfaces, transport capabilities and
	// security are the gateway's to fill in.
	Card Card `json:"card"`
}

// SkillRule says which conditions hold for a skill.
type SkillRule struct {
	ID string `json:"id"`
	// Any of them makes every message of the skill a task; with none the handler
	// may answer directly.
	TaskWhen []Condition `json:"task_when"`
}

// Card is an agent card in ProtoJSON.
type Card struct{ *a2apb.AgentCard }

// Agent finds an agent by name, nil if there is none.
func (a *Agents) Agent(name string) *Agent {
	for i := range a.Agents {
		if a.Agents[i].Name == name {
			return &a.Agents[i]
		}
	}
	return nil
}

// Settings are those of an agent, the defaults for one that left the file: its
// tasks stay.
func (a *Agents) Settings(name string) Agent {
	if found := a.Agent(name); found != nil {
		return *found
	}
	gone := Agent{Name: name, Card: Card{&a2apb.AgentCard{}}}
	gone.fillDefaults()
	return gone
}

// Default finds the agent that is served at the root, nil if there is none.
func (a *Agents) Default() *Agent {
	for i := range a.Agents {
		if a.Agents[i].Default {
			return &a.Agents[i]
		}
	}
	return nil
}

// TaskWhen tells which conditions hold for a skill; known is false for a skill
// without a rule, whose messages are tasks.
func (a *Agent) TaskWhen(skill string) (conditions []Condition, known bool) {
	for _, r := range a.Skills {
		if r.ID == skill {
			return r.TaskWhen, true
		}
	}
	return nil, false
}

// Streaming tells whether the agent's card offers streams; it does unless its
// author says no.
func (a *Agent) Streaming() bool {
	c := a.Card.GetCapabilities()
	return c == nil || c.Streaming == nil || c.GetStreaming()
}
