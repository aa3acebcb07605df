// Package journal is what a chaos run writes down while it runs: what senders
// sent and were told, what handlers did, and what was done to the cluster. The
// checker reads it together with the store.
package journal

import (
	"sync"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
)

// Message is one messageId: everything that its sender sent and was told.
type Message struct {
	Agent     string
	MessageID string
	// TaskID is the task that the message named; empty for one that starts a task.
	TaskID string
	Text   string
	// Attempts are in the order in which they were sent. Several may be open at the
	// same time: duplicates are sent beside each other too.
	Attempts []Attempt
}

// Attempt is one send of a message.
type Attempt struct {
	Begun, Ended time.Time
	// Binding is jsonrpc, rest or grpc.
	Binding string
	// Blocking: the answer was to come when the turn is settled.
	Blocking bool
	// Lost: the sender hung up before there was an answer, on purpose or because the
	// connection broke. Nothing is known then.
	Lost bool
	// Error is the reason of a refusal (as in ErrorInfo), Retryable whether the answer
	// said that it is worth another try.
	Error     string
	Retryable bool
	// Task is what was answered; without history. Reply is a direct Message.
	Task  *a2apb.Task
	Reply *a2apb.Message
}

// Cancel is what somebody was told who canceled a task.
type Cancel struct {
	TaskID string
	Attempt
}

// Read is what GetTask told between two times.
type Read struct {
	TaskID    string
	Begun, At time.Time
	// Task is nil for a refusal for good, of which Error is the reason.
	Task  *a2apb.Task
	Error string
}

// Stream is what one subscriber saw of a task over all its connections.
type Stream struct {
	TaskID string
	// Connections are in the order in which they were opened.
	Connections []Connection
}

// Connection is one stream.
type Connection struct {
	Opened, Closed time.Time
	Binding        string
	// OfTurn: it was opened by a message, and ends when the turn asks, too.
	OfTurn bool
	// Resumed is the Last-Event-ID that it was opened with; 0 for none.
	Resumed int64
	Events  []Seen
	// Ended: the server ended the stream, as it does after a terminal event.
	Ended bool
	// Error is the reason of a refusal or of an error as last event.
	Error     string
	Retryable bool
}

// Seen is one event of a stream.
type Seen struct {
	At time.Time
	// Version is the event's id; 0 on gRPC, which has none.
	Version int64
	// Resync: the event was named so on the wire, where it has a name: it is a
	// snapshot in the place of events that the subscriber has missed.
	Resync bool
	Event  *a2apb.StreamResponse
}

// Run is one run of a handler: one claim of one turn, in one process.
type Run struct {
	// Process is the name of the executor process, such as executor-1.
	Process string
	PID     int
	TaskID  string
	// Turn is the idempotency key, which all attempts of a turn share.
	Turn    string
	Attempt int
	// ID is unique. Every artifact chunk and message of the run carries it.
	ID    string
	Begun time.Time
	// Ended is zero if the process died before.
	Ended time.Time
	// Result is how the handler saw its end: "completed", "asked", "failed" (on
	// purpose), "draining", "canceled", "lease lost", "max runtime", or an error.
	Result string
}

// Interruption is something that was done to the cluster.
type Interruption struct {
	Begun, Ended time.Time
	// Kind is kill, pause, restart, cut or wipe.
	Kind string
	// Target is the name of the process, such as taskstore-0, nats or postgres.
	Target string
}

// Journal collects. Its methods may be called from many goroutines; what is
// written down must not be changed afterwards.
type Journal struct {
	mu       sync.Mutex
	messages []*Message
	cancels  []*Cancel
	reads    []*Read
	streams  []*Stream
}

// AddMessage writes down a message when nothing more will be sent of it.
func (j *Journal) AddMessage(m *Message) { add(j, &j.messages, m) }

// AddCancel writes down a cancel that was answered.
func (j *Journal) AddCancel(c *Cancel) { add(j, &j.cancels, c) }

// AddRead writes down an answer to GetTask.
func (j *Journal) AddRead(r *Read) { add(j, &j.reads, r) }

// AddStream writes down a subscriber's view when the subscriber has ended.
func (j *Journal) AddStream(s *Stream) { add(j, &j.streams, s) }

func add[T any](j *Journal, list *[]*T, entry *T) {
	j.mu.Lock()
	defer j.mu.Unlock()
	*list = append(*list, entry)
}

// Messages are all messages so far; likewise the others.
func (j *Journal) Messages() []*Message { return entries(j, &j.messages) }

// Cancels are all answered cancels.
func (j *Journal) Cancels() []*Cancel { return entries(j, &j.cancels) }

// Reads are all answers to GetTask.
func (j *Journal) Reads() []*Read { return entries(j, &j.reads) }

// Streams are the views of all subscribers that have ended.
func (j *Journal) Streams() []*Stream { return entries(j, &j.streams) }

func entries[T any](j *Journal, list *[]*T) []*T {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]*T(nil), *list...)
}
