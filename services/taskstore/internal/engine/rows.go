package engine

import (
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
)

// Scope limits what a query sees. Tenant is always set; an empty Agent or Owner
// doesn't limit.
type Scope struct {
	Tenant string
	Agent  string
	Owner  string
}

// Phase tells where a task stands with the executors. It lies outside the
// task's version.
type Phase int16

const (
	// PhaseIdle is parked or terminal: nobody works on it.
	PhaseIdle Phase = 0
	// PhaseQueued waits for a claim.
	PhaseQueued Phase = 1
	// PhaseLeased is claimed under LeaseEpoch.
	PhaseLeased Phase = 2
)

// Task is a task's own row. Zero times are NULL.
type Task struct {
	ID        string
	Tenant    string
	Agent     string
	Owner     string
	ContextID string
	CreatedAt time.Time

	State a2apb.TaskState
	// The version that made the current status; its message, if any, is the
	// row of messages with that version.
	StatusVersion int64
	StatusTime    time.Time
	Version       int64
	// The version of the newest user message.
	MessageVersion int64
	// The newest user message that a settled turn had handled.
	HandledVersion int64
	// google.protobuf.Struct, encoded; nil for none.
	Metadata []byte
	// Encoded size of what the task holds: its artifact chunks and its messages.
	ContentBytes int64
	TerminalAt   time.Time

	Phase    Phase
	QueuedAt time.Time
	// Not to be claimed before; zero for at once.
	DueAt        time.Time
	EnqueueCount int64
	LeaseEpoch   int64
	// The number of the last write that was committed under LeaseEpoch.
	WriteSeq      int64
	Holder        string
	Attempt       int32
	TurnStartedAt time.Time
	// W3C trace context of the request that queued the task.
	Traceparent string
	// SHA-256 of the grant that resumes a task in AUTH_REQUIRED; nil for none.
	GrantHash []byte
}

// MessageKind tells what a row of messages is.
type MessageKind int16

const (
	// MessageUser is a message of a sender.
	MessageUser MessageKind = 1
	// MessageStatus is the message of a status.
	MessageStatus MessageKind = 2
)

// Message is one row of a task's history. The message of the current status is
// a row too, and no part of the history until the next status comes.
type Message struct {
	TaskID  string
	Version int64
	Kind    MessageKind
	// lf.a2a.v1.Message, encoded.
	Data []byte
	// errand.event.v1.RequestInfo, encoded; nil for a status message.
	Request []byte
}

// ArtifactKey names an artifact of a task.
type ArtifactKey struct {
	TaskID     string
	ArtifactID string
}

// ArtifactHead is what an update needs to know of an artifact that exists.
type ArtifactHead struct {
	// The version at which the artifact first appeared.
	Position int64
	// Total of the newest chunk.
	Bytes int64
}

// Chunk is one part of an artifact. An artifact is its chunks in the order of
// their versions; artifacts are ordered by position.
type Chunk struct {
	ArtifactKey
	Version int64
	// The version at which the artifact first appeared.
	Position int64
	// Encoded size of the artifact's chunks up to and with this one.
	Total int64
	// lf.a2a.v1.Artifact with what this chunk brought, encoded.
	Data []byte
}

// Event is a row of the event log.
type Event struct {
	Tenant    string
	TaskID    string
	Version   int64
	CreatedAt time.Time
	// Who publishes it, and its number there.
	Publisher string
	Seq       int64
	// errand.event.v1.Event, encoded.
	Data []byte
}

// DedupeKey is unique for each accepted message.
type DedupeKey struct {
	Tenant    string
	Subject   string
	Agent     string
	MessageID string
}

// Dedupe remembers what a message became: a task or a direct exchange.
type Dedupe struct {
	DedupeKey
	// 32 bytes.
	Fingerprint     []byte
	TaskID          string
	AcceptedVersion int64
	DirectID        string
	CreatedAt       time.Time
}

// Lease is an executor's hold on a task. The row carries time only; the fence
// is the task's phase and lease epoch.
type Lease struct {
	LeaseRef
	Holder    string
	ExpiresAt time.Time
}

// LeaseRef names one claim of a task.
type LeaseRef struct {
	TaskID string
	Epoch  int64
}

// Renewal is the outcome of a heartbeat for one lease.
type Renewal struct {
	// Whether the lease is still held, and was moved.
	Held bool
	// Whether no later claim was made.
	Current bool
	// Of the task; unspecified for an unknown one.
	State a2apb.TaskState
	// The version of the task's newest user message.
	MessageVersion int64
}

// Direct is an exchange that made no task.
type Direct struct {
	ID        string
	Key       ContextKey
	CreatedAt time.Time
	// lf.a2a.v1.Message, encoded.
	Message []byte
	Reply   []byte
}

// ContextKey names a context: each owner has contexts of its own.
type ContextKey struct {
	Tenant    string
	Owner     string
	Agent     string
	ContextID string
}

// Context is what an agent remembers between turns.
type Context struct {
	ContextKey
	State     []byte
	Revision  int64
	CreatedAt time.Time
	UpdatedAt time.Time
	ExpiresAt time.Time
}

// Turn is a task or a direct exchange of a context.
type Turn struct {
	CreatedAt time.Time
	TaskID    string
	Direct    *Direct
}

// TaskKey names a task within a scope. What lies outside the scope does not
// exist. Here alone an empty Scope.Tenant doesn't limit either: a write of an
// executor is fenced by its lease.
type TaskKey struct {
	Scope Scope
	ID    string
}

// TaskRef names a task of a tenant.
type TaskRef struct {
	Tenant string
	ID     string
}

// Head is a task without contents.
type Head struct {
	ID      string
	Version int64
	State   a2apb.TaskState
}

// Detail says how much of a task is read beside its own row and the message of
// its current status.
type Detail struct {
	// The newest messages of the history, at most; negative for all.
	History   int
	Artifacts bool
}

// Snapshot is a task at one version.
type Snapshot struct {
	Task *Task
	// Of the current status; nil if it has none.
	StatusMessage *Message
	// Oldest first.
	History []Message
	// By position, then version.
	Chunks []Chunk
}

// ListQuery selects tasks.
type ListQuery struct {
	Scope Scope
	// Empty, unspecified and zero don't limit.
	ContextID   string
	State       a2apb.TaskState
	StatusSince time.Time
	// Position after which the page starts; zero for the first page.
	BeforeTime time.Time
	BeforeID   string
	Limit      int
}

// Queue is the work of one agent for one tenant.
type Queue struct {
	Agent  string
	Tenant string
}

// Publisher is a task store that publishes its own events.
type Publisher struct {
	ID      string
	Through int64
	BeatAt  time.Time
}
