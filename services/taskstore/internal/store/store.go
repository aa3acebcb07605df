package store

import (
	"context"
	"errors"
	"time"

	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/services/taskstore/internal/batch"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

// Options is what a store needs besides its database. All fields are required.
type Options struct {
	// Receives what was committed.
	Publisher Publisher
	// The agents file, with the table of limits.
	Agents *config.Agents
	// Signs page tokens; the same for all stores of a cluster.
	CursorKey task.CursorKey
	// Now is read once for each transaction and cut to milliseconds.
	Now func() time.Time
	// NewID makes ids for what a request didn't name: a UUID.
	NewID func() string
	// How long a context is kept after its last accepted message.
	ContextTTL time.Duration
	// Full tells whether an agent's queue takes no new task. It is asked once for each
	// and answers at once. Nil stands for queues that are never full.
	Full func(agent string) bool
	// Transactions that run at the same time: 1 for SQLite.
	Parallel int
}

// What one transaction takes. Its size bounds how long others wait for it.
const (
	batchItems   = 128
	batchBytes   = 16 << 20
	batchTimeout = 20 * time.Second
)

// Store keeps tasks. Its methods are safe for concurrent use.
type Store struct {
	Options
	engine engine.Engine
	writes *batch.Batcher[change]
}

// Result is the outcome of one item of a write.
type Result[T any] struct {
	Value T
	Err   error
}

// New returns a store over an engine, which stays the caller's to close, after
// the store.
func New(e engine.Engine, o Options) *Store {
	s := &Store{Options: o, engine: e}
	s.writes = batch.New(batch.Options{
		Parallel:     o.Parallel,
		Items:        batchItems,
		Bytes:        batchBytes,
		Waiting:      o.Agents.Limits.WaitingWrites,
		WaitingBytes: o.Agents.Limits.WaitingBytes,
		Timeout:      batchTimeout,
		Split:        splittable,
	}, s.flush)
	return s
}

// Close refuses new writes and waits for those that were taken.
func (s *Store) Close() { s.writes.Close() }

// Waiting tells how many changes wait for a transaction.
func (s *Store) Waiting() int { return s.writes.Waiting() }

// Ready fails while the database doesn't serve.
func (s *Store) Ready(ctx context.Context) error {
	return s.engine.Ping(ctx)
}

// splittable tells whether the changes of a failed transaction may be tried one
// by one. A database that is away would fail for each of them, and later; a row
// that somebody has locked stops the one that needs it.
func splittable(err error) bool {
	return !inDoubt(err) && (errors.Is(err, engine.ErrLocked) || !errors.Is(err, engine.ErrUnavailable))
}

// inDoubt tells whether a failed transaction may have committed.
func inDoubt(err error) bool {
	return errors.Is(err, engine.ErrInDoubt) || errors.Is(err, context.DeadlineExceeded)
}
