// Package engine is what the task store asks of a database: rows in, rows out,
// one transaction per change. It knows no rules; package store decides, the
// engines (packages postgres and sqlite) remember.
package engine

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrNotFound says that no row matches the key and the scope.
var ErrNotFound = errors.New("no such row")

// ErrConflict says that a guarded row was not as it had been read, so that the
// transaction changed nothing. It cannot happen between engines that lock what
// they load; it is the backstop that makes a broken lock visible.
var ErrConflict = errors.New("row changed since it was read")

// ErrUnavailable says that the database can't be reached or is overloaded;
// nothing was changed, and the same call may succeed later.
var ErrUnavailable = errors.New("database unavailable")

// ErrLocked is an ErrUnavailable with one row for its cause: somebody else holds
// the row's lock for too long. Changes of other rows would succeed.
var ErrLocked = fmt.Errorf("%w: a row is locked", ErrUnavailable)

// ErrInDoubt says that the connection was lost while a transaction committed:
// its changes are there whole or not at all.
var ErrInDoubt = errors.New("outcome of the transaction is unknown")

// RoleClockSlack is far above what the clocks of two task stores differ by.
const RoleClockSlack = time.Minute

// Engine is one database.
//
// All times are passed in, so that tests decide what now is, and are cut to
// milliseconds before they are stored; package clock makes them of Now. Ids of tasks are UUIDs in their
// canonical text form; an id that isn't one matches nothing.
type Engine interface {
	Writer
	Reader
	Keeper
	Outbox

	// Ping fails while the database can't be reached or its schema is not the
	// one that this program was built for.
	Ping(ctx context.Context) error
	// Now is the database's own time.
	Now(ctx context.Context) (time.Time, error)
	Close()
}

// Writer changes rows.
type Writer interface {
	// Update runs one transaction: it reserves and loads what sel names, with
	// the tasks' and contexts' rows locked in key order, lets decide choose the
	// changes, and commits them. When decide fails nothing is changed and its
	// error is returned as it is. decide may be called again after a failure
	// that is known to have changed nothing (serialization, deadlock).
	Update(ctx context.Context, sel Selection, decide func(*Loaded) (*Changes, error)) error

	// RenewLeases moves the expiry of the leases that are still held, and tells
	// which are: one result for each ref, in order.
	RenewLeases(ctx context.Context, holder string, refs []LeaseRef, until time.Time) ([]Renewal, error)
}

// Selection names the rows of an update. No key occurs twice.
type Selection struct {
	// Inserted unless the key exists.
	Reserve []Dedupe
	// Loaded and locked; missing and invisible rows are left out of Loaded.
	Tasks []TaskKey
	// Leases loaded and locked, by task id; missing rows are left out of Loaded.
	Leases []string
	// Probed, at a cost that doesn't grow with the artifact.
	Artifacts []ArtifactKey
	// Loaded and locked; missing rows are left out of Loaded.
	Contexts []ContextKey
	// Dead letters loaded and locked, by task id; missing rows are left out of Loaded.
	DeadLetters []string
}

// Loaded is what an update found.
type Loaded struct {
	// Keys of Selection.Reserve that this transaction inserted.
	Reserved map[DedupeKey]bool
	// Records of Selection.Reserve that had existed.
	Known map[DedupeKey]Dedupe
	// By id.
	Tasks map[string]*Task
	// By task id.
	Leases map[string]Lease
	// Each artifact that exists.
	Artifacts map[ArtifactKey]ArtifactHead
	Contexts  map[ContextKey]*Context
	// By task id.
	DeadLetters map[string]DeadLetter
}

// Changes is what an update writes. Slices may be empty.
type Changes struct {
	InsertTasks []*Task
	// Every mutable column is written, where the row still has the version and
	// lease epoch of Read and isn't terminal; otherwise ErrConflict.
	UpdateTasks []TaskUpdate
	Messages    []Message
	// Removed before Chunks are inserted.
	DropArtifacts []ArtifactKey
	Chunks        []Chunk
	Events        []Event
	// Reserved records whose values became known.
	UpdateDedupe []Dedupe
	// Reserved records to forget: their message was refused.
	DropDedupe []DedupeKey
	// Inserted, or replaced for a task that has one.
	PutLeases  []Lease
	DropLeases []string
	Directs    []Direct
	// Inserted unless they exist; otherwise only ExpiresAt and UpdatedAt move.
	TouchContexts []Context
	// Inserted or replaced whole.
	PutContexts []Context
	DeadLetters []DeadLetter
	// Their Redrive is written, where there is none yet; otherwise ErrConflict.
	RedriveDeadLetters []DeadLetter
}

// TaskUpdate replaces a loaded row.
type TaskUpdate struct {
	// As it was loaded.
	ReadVersion    int64
	ReadLeaseEpoch int64
	Task           *Task
}

// Reader reads rows. Scope stands in the predicate of each query.
type Reader interface {
	// ReadTasks reads whole tasks, each consistent at one version. Missing and
	// invisible ones are left out; the order is that of ids.
	ReadTasks(ctx context.Context, scope Scope, ids []string, detail Detail) ([]*Snapshot, error)
	// ListTasks reads a page ordered by status time descending, then id ascending;
	// of each task its own row and the message of its current status.
	ListTasks(ctx context.Context, q ListQuery) ([]*Snapshot, error)
	// CountTasks counts what ListTasks pages through, ignoring Before and Limit:
	// exact up to atMost, above it an estimate that is never lower than atMost+1.
	CountTasks(ctx context.Context, q ListQuery, atMost int) (int, error)
	// ReadHeads reads versions and states; missing ones are left out.
	ReadHeads(ctx context.Context, refs []TaskRef) ([]Head, error)
	// ReadEvents reads events above a version, in order, with the task's head of
	// the same moment; ErrNotFound for an unknown or invisible task.
	ReadEvents(ctx context.Context, scope Scope, id string, after int64, limit int) ([]Event, Head, error)
	// ReadUserMessages reads messages of kind user above a version, in order.
	ReadUserMessages(ctx context.Context, ref TaskRef, after int64) ([]Message, error)
	// ReadDedupe reads a record, ErrNotFound if there is none.
	ReadDedupe(ctx context.Context, key DedupeKey) (Dedupe, error)
	// ReadDirect reads a direct exchange, ErrNotFound if there is none.
	ReadDirect(ctx context.Context, tenant, id string) (Direct, error)
	// ReadContext reads a context, ErrNotFound if there is none.
	ReadContext(ctx context.Context, key ContextKey) (*Context, error)
	// ReadTurns reads a context's newest turns, newest first: direct exchanges
	// in full, tasks by id.
	ReadTurns(ctx context.Context, key ContextKey, limit int) ([]Turn, error)
	// ReadDeadLetter reads a task's dead letter, ErrNotFound if there is none.
	ReadDeadLetter(ctx context.Context, taskID string) (DeadLetter, error)
	// ListDeadLetters reads a page of dead letters.
	ListDeadLetters(ctx context.Context, q DeadLetterQuery) ([]DeadLetter, error)
}

// Keeper is what the background work asks. Each query is bounded by limit and
// answers oldest first.
type Keeper interface {
	// LapsedLeases reads leases that expired before now.
	LapsedLeases(ctx context.Context, now time.Time, limit int) ([]LeaseRef, error)
	// DueTasks reads delayed tasks whose due time has come.
	DueTasks(ctx context.Context, now time.Time, limit int) ([]string, error)
	// Queues lists the (agent, tenant) pairs that have queued tasks.
	Queues(ctx context.Context) ([]Queue, error)
	// OldestQueued reads the tasks of a queue that were queued before a time and
	// aren't delayed, in the order in which they were queued.
	OldestQueued(ctx context.Context, q Queue, before time.Time, limit int) ([]string, error)
	// UnsettledAgents lists the agents that have interrupted tasks or turns that
	// have begun, in order.
	UnsettledAgents(ctx context.Context) ([]string, error)
	// ParkedTasks reads an agent's interrupted tasks with a status older than before.
	ParkedTasks(ctx context.Context, agent string, before time.Time, limit int) ([]string, error)
	// OverrunTasks reads an agent's unsettled tasks whose turn began before a time.
	OverrunTasks(ctx context.Context, agent string, startedBefore time.Time, limit int) ([]string, error)

	// HoldRole takes or renews a cluster-wide role until a time and tells
	// whether holder has it. A role that is held for more than RoleClockSlack longer
	// was dated before the clock was set back, and is free.
	HoldRole(ctx context.Context, role, holder string, now, until time.Time) (bool, error)
	DropRole(ctx context.Context, role, holder string) error

	// PurgeDedupe deletes up to limit records of tasks that became terminal, or
	// of direct Messages that were stored, before a time.
	PurgeDedupe(ctx context.Context, before time.Time, limit int) (int, error)
	// PurgeDirects deletes up to limit direct exchanges stored before a time.
	PurgeDirects(ctx context.Context, before time.Time, limit int) (int, error)
	// PurgeContexts deletes up to limit contexts that expired before a time.
	PurgeContexts(ctx context.Context, before time.Time, limit int) (int, error)
	// PurgeDeadLetters deletes up to limit dead letters from before a time.
	PurgeDeadLetters(ctx context.Context, before time.Time, limit int) (int, error)
	// PurgeEvents forgets events older than before, never one that a publisher
	// has not published yet, and makes room for those to come.
	PurgeEvents(ctx context.Context, now, before time.Time) error
}

// Outbox is the event log seen as what is still to be published. A publisher
// is one running task store; it numbers its events itself.
type Outbox interface {
	// BeatPublisher records that the publisher lives and has published all its
	// events up to through. The first beat registers it.
	BeatPublisher(ctx context.Context, publisher string, through int64, now time.Time) error
	// StalePublishers reads publishers that have not beaten since before.
	StalePublishers(ctx context.Context, before time.Time) ([]Publisher, error)
	// ReadOutbox reads a publisher's events above a number, in order.
	ReadOutbox(ctx context.Context, publisher string, after int64, limit int) ([]Event, error)
	// AdvancePublisher records that a publisher's events up to through are
	// published, without a sign of life. Marks never fall back.
	AdvancePublisher(ctx context.Context, publisher string, through int64) error
	// DropPublisher forgets a publisher, unless it has events above its mark.
	DropPublisher(ctx context.Context, publisher string) error
	// OutboxLag reads how many events are not known to be published, up to
	// atMost, and the time of the oldest (zero for none).
	OutboxLag(ctx context.Context, atMost int) (int, time.Time, error)
}
