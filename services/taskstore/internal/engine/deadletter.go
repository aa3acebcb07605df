package engine

import "time"

// DeadLetter records that the cluster gave a task up, for an operator to see: the
// task itself is FAILED and tells its sender no more than that.
type DeadLetter struct {
	TaskID    string
	Tenant    string
	Agent     string
	Owner     string
	ContextID string
	// One of a few fixed words, fit for a metric's label.
	Reason string
	// Claims of the last turn that were lost.
	Attempts int32
	// Who held the task when it was given up; empty if nobody did.
	LastHolder string
	At         time.Time
	Redrive    Redrive
}

// Redrive is what became of a dead letter; zero for one that is as it was.
type Redrive struct {
	// The new task.
	TaskID string
	At     time.Time
	// Who asked for it; may be empty.
	By string
}

// DeadLetterQuery selects dead letters, newest first, then by task id. Empty,
// nil and zero don't limit.
type DeadLetterQuery struct {
	Tenant   string
	Agent    string
	Reason   string
	Redriven *bool
	// Inclusive lower and exclusive upper bound of At.
	Since, Until time.Time
	// Position after which the page starts.
	BeforeTime time.Time
	BeforeID   string
	Limit      int
}
