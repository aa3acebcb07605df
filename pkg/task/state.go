package task

import (
	"slices"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
)

// State is a task's state; TASK_STATE_UNSPECIFIED is never a stored one.
type State = a2apb.TaskState

// The states by the names that the rules use.
const (
	Submitted     = a2apb.TaskState_TASK_STATE_SUBMITTED
	Working       = a2apb.TaskState_TASK_STATE_WORKING
	Completed     = a2apb.TaskState_TASK_STATE_COMPLETED
	Failed        = a2apb.TaskState_TASK_STATE_FAILED
	Canceled      = a2apb.TaskState_TASK_STATE_CANCELED
	InputRequired = a2apb.TaskState_TASK_STATE_INPUT_REQUIRED
	Rejected      = a2apb.TaskState_TASK_STATE_REJECTED
	AuthRequired  = a2apb.TaskState_TASK_STATE_AUTH_REQUIRED
)

// moves is the table of moves: every pair that isn't here is refused. A2A §4.1.3
// allows more; a narrower table keeps every history explainable.
var moves = map[State][]State{
	Submitted:     {Working, Rejected, Canceled, Failed},
	Working:       {Working, InputRequired, AuthRequired, Completed, Failed, Canceled, Rejected},
	InputRequired: {Working, Canceled, Failed},
	AuthRequired:  {Working, Canceled, Failed},
}

// CanMove tells whether a task in state from may get state to.
func CanMove(from, to State) bool {
	return slices.Contains(moves[from], to)
}

// Terminal tells whether a state is final: nothing is accepted after it.
func Terminal(s State) bool {
	switch s {
	case Completed, Failed, Canceled, Rejected:
		return true
	default:
		return false
	}
}

// Interrupted tells whether a task waits for its sender.
func Interrupted(s State) bool {
	return s == InputRequired || s == AuthRequired
}

// Settled tells whether a turn is over: the state is terminal or interrupted.
func Settled(s State) bool {
	return Terminal(s) || Interrupted(s)
}

// Known tells whether s is a state that a task can be in.
func Known(s State) bool {
	return s >= Submitted && s <= AuthRequired
}
